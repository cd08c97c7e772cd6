"""The command that serves the local page or writes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from processes import HANG
from serving import FILES, WANTED, address, local, released, tarball

from restore import zoo
from restore.app import runtime

if TYPE_CHECKING:
    from restore.app.server import Server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, priors: list[Path]) -> Path:
    """A user data folder with a small runtime in it, and the small priors as the published ones."""
    home = tmp_path / "restore"
    archive = tarball(FILES)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(zoo.search, "published_folder", lambda: priors[0].parent)
    monkeypatch.setattr(runtime, "RELEASE", released(archive))
    monkeypatch.setattr(runtime, "MEMBERS", WANTED)
    runtime.install(runtime.user_folder(), local(tmp_path, archive))
    return home


@pytest.fixture
def app(run: Callable[..., int]) -> Callable[..., int]:
    return lambda *words: run("app", *words)


def test_output_writes_the_site(home: Path, app: Callable[..., int], tmp_path: Path) -> None:
    assert app("--output", tmp_path / "site") == 0
    assert (tmp_path / "site" / "index.html").exists() and (tmp_path / "site" / "ort" / "run.wasm").exists()
    assert app("--output", tmp_path / "site") == 5
    assert app("--output", tmp_path / "site", "--overwrite") == 0


def test_without_the_runtime_writing_names_its_installation(
    home: Path, app: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in runtime.user_folder().iterdir():
        path.unlink()
    assert app("--output", tmp_path / "site") == 4
    assert "`restore app --install`" in capsys.readouterr().err
    assert app("--install") == 4  # nothing listens at the mirror's address
    assert "--runtime FILE.tgz" in capsys.readouterr().err
    assert app("--runtime", tmp_path / "none.tgz") == 4
    assert app("--runtime", tmp_path / "run.tgz") == 0
    assert app("--output", tmp_path / "site") == 0


@pytest.mark.parametrize("words", [("app", "--no-browser"), ("serve",)])
def test_an_address_that_cannot_be_used_ends_the_command(
    home: Path, run: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run(*words, "--port", address(server)[1]) == 2
    assert "--port" in capsys.readouterr().err
    assert run(*words, "--port", 65536) == 2
    if words == ("serve",):
        for host in ("no such host", "192.0.2.1", "::1::"):
            assert run("serve", "--host", host, "--port", 0) == 2


@pytest.mark.parametrize("words", [("app", "--no-browser"), ("serve",)])
def test_without_the_extra_it_is_named(
    home: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: Any
) -> None:
    for name in [name for name in sys.modules if name == "restore.app.server"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(*words) == 2
    assert "restore-prior[serve]" in capsys.readouterr().err


SERVE = """
from pathlib import Path
from restore import zoo
from restore.cli import main
zoo.search.published_folder = lambda: Path(r"{models}")
main()
"""


@pytest.mark.parametrize(
    ("words", "number", "code"), [(("app", "--no-browser"), signal.SIGINT, 0), (("serve",), signal.SIGTERM, 143)]
)
def test_it_prints_its_address_and_serves_until_stopped(priors: list[Path], words: Any, number: int, code: int) -> None:
    script = SERVE.format(models=priors[0].parent)
    command = [sys.executable, "-c", script, *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{url}models.json", timeout=HANG) as answer:
                assert json.load(answer)["priors"]
            os.kill(process.pid, number)
            _, said = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode == code and "Traceback" not in said
