"""Priors of links are left out, and links in a folder that is written are not followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from priors import random_prior
from refusals import refused

from restore import zoo
from restore.app import assembly
from restore.errors import ModelError, OutputError
from restore.inference.onnx.contract import read_intact, sealed


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    """The folder of a prior with something for a graph."""
    zoo.save(tmp_path / "models" / "mine", random_prior(name="mine"), "# mine\n")
    (tmp_path / "models" / "mine" / zoo.GRAPH).write_bytes(sealed(b"graph"))
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "models" / "mine"


def linked(prior: Path, name: str) -> None:
    """Put a link in place of a file, to the same file elsewhere."""
    (prior / name).replace(prior.parent.parent / name)
    (prior / name).symlink_to(prior.parent.parent / name)


@pytest.mark.parametrize("name", [zoo.GRAPH, zoo.WEIGHTS])
def test_a_prior_of_links_is_left_out(name: str, prior: Path) -> None:
    zoo.save(prior.parent / "other", random_prior(name="other"), "# other\n")
    (prior.parent / "other" / zoo.GRAPH).write_bytes(sealed(b"graph"))
    linked(prior, name)
    zoo.leave_out.cache_clear()
    with pytest.warns(UserWarning) as told:
        assert list(assembly.usable([prior, prior.parent / "other"])) == [prior.parent / "other"]
    assert [str(prior / name) in str(warning.message) for warning in told] == [True]
    with pytest.raises(ModelError):
        assembly.usable([prior])
    with pytest.raises(ModelError):
        zoo.load(prior) if name == zoo.WEIGHTS else read_intact(prior / name)


@pytest.mark.parametrize("inside", ["models", "models/mine", "ort"])
def test_the_site_is_not_written_through_links(inside: str, prior: Path, tmp_path: Path) -> None:
    (tmp_path / "run.mjs").write_bytes(b"runtime")
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "site"
    elsewhere.mkdir()
    (target / inside).parent.mkdir(parents=True)
    (target / inside).symlink_to(elsewhere, target_is_directory=True)
    with refused(OutputError, target / inside):
        assembly.write([prior], {"run.mjs": tmp_path / "run.mjs"}, target, overwrite=True)
    assert not list(elsewhere.iterdir()) and not (target / "index.html").exists()
