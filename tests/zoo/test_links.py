"""Row 71: links in a prior of the user's are not served, and those in a folder that is written are not followed."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest
from priors import random_prior

from restore import zoo
from restore.app import assembly
from restore.app.server import Server
from restore.errors import ModelError, OutputError


@pytest.fixture
def prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a prior with something for a graph."""
    monkeypatch.setattr(assembly, "read_checked", lambda path: b"")
    zoo.save(tmp_path / "models" / "mine", random_prior(name="mine"), "# mine\n")
    (tmp_path / "models" / "mine" / zoo.GRAPH).write_bytes(b"graph")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "models" / "mine"


def linked(prior: Path, name: str) -> None:
    (prior / name).unlink()
    (prior / name).symlink_to(prior.parent.parent / "secret")


@pytest.mark.parametrize("name", [zoo.GRAPH, zoo.WEIGHTS])
def test_row71_a_prior_of_links_is_left_out(name: str, prior: Path) -> None:
    zoo.save(prior.parent / "other", random_prior(name="other"), "# other\n")
    (prior.parent / "other" / zoo.GRAPH).write_bytes(b"graph")
    linked(prior, name)
    with pytest.warns(UserWarning, match="is a link, which is not followed"):
        site = assembly.collect({}, [prior, prior.parent / "other"])
    assert not [address for address in site if address.startswith("models/mine/")]
    assert f"models/other/{name}" in site


def test_row71_a_link_that_comes_later_is_not_served(prior: Path, tmp_path: Path) -> None:
    site = assembly.collect({}, [prior])
    linked(prior, zoo.GRAPH)
    with Server(site, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answers = []
        for name in (zoo.GRAPH, zoo.WEIGHTS):
            connection = http.client.HTTPConnection(*server.server_address, timeout=60)
            connection.request("GET", f"/models/mine/{name}", headers={"Host": "localhost"})
            answer = connection.getresponse()
            answers.append((answer.status, b"secret" in answer.read()))
            connection.close()
        server.shutdown()
    assert answers == [(404, False), (200, False)]
    with pytest.raises(OutputError, match="cannot be written"):
        assembly.write(site, tmp_path / "site")


def test_row71_a_folder_that_is_a_link_may_hold_a_prior(prior: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(prior, target_is_directory=True)
    assert "models/elsewhere/solver.onnx" in assembly.collect({}, [tmp_path / "elsewhere"])


@pytest.mark.parametrize("inside", ["models", "models/mine", "ort"])
def test_row71_the_site_is_not_written_through_links(inside: str, prior: Path, tmp_path: Path) -> None:
    (tmp_path / "run.mjs").write_bytes(b"runtime")
    site = assembly.collect({"run.mjs": tmp_path / "run.mjs"}, [prior])
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "site"
    elsewhere.mkdir()
    (target / inside).parent.mkdir(parents=True)
    (target / inside).symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(OutputError, match="is a link, which is not followed"):
        assembly.write(site, target, overwrite=True)
    assert not list(elsewhere.iterdir()) and not (target / "index.html").exists()


def test_row71_a_file_that_is_a_link_is_replaced(prior: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    target.mkdir()
    (target / "index.html").symlink_to(tmp_path / "secret")
    assembly.write(assembly.collect({}, [prior]), target, overwrite=True)
    assert (tmp_path / "secret").read_bytes() == b"secret" and not (target / "index.html").is_symlink()


def test_row71_nothing_but_links_is_no_site(prior: Path) -> None:
    linked(prior, zoo.GRAPH)
    with pytest.warns(UserWarning, match="is a link"), pytest.raises(ModelError, match=r"no prior has a solver\.onnx"):
        assembly.collect({}, [prior])
