"""What docs/serve.md says to do, done; and the container, as far as it can be known without one."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes import HANG
from serving import serving

import restore
from restore.app.reference import RESPONSES
from restore.app.server import Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def blocks(language: str, mark: str) -> list[str]:
    return [block for block in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if mark in block]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with serving({}) as server:
        yield server


@pytest.fixture
def there(running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A folder with the example images; and what is said of our server there, as it is said of this one."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    return lambda text: re.sub(r"(?:http://)?localhost:8000/", running.url, text)


def pixels(path: str | Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L"))


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_restore(there: Callable[[str], str]) -> None:
    (commands,) = blocks("sh", "curl")
    torn, noisy = pixels("assets/digit-torn.png"), "assets/digit-noisy.png"
    wanted = {
        "clean.png": [restore.denoise(noisy), restore.denoise(noisy, "tap-mnist", 0.1)],
        "whole.png": [restore.complete(torn, pixels("assets/digit-hole.png") > 127)],
    }
    for line in commands.splitlines():
        subprocess.run(there(line).replace("curl ", "curl -sSf ", 1), shell=True, check=True, timeout=HANG)
        written = line.split()[-1]
        if written in wanted:
            np.testing.assert_array_equal(pixels(written), np.asarray(wanted[written].pop(0)))
    assert not any(wanted.values())
    assert json.loads(Path("answer.json").read_text(encoding="utf-8"))["model"] == "tap-mnist"


def test_its_python_restores(there: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("requests")
    (code,) = blocks("python", "requests")
    exec(there(code), {})
    assert "converged tap-mnist" in capsys.readouterr().out
    np.testing.assert_array_equal(pixels("clean.png"), np.asarray(restore.denoise("assets/digit-noisy.png", p="auto")))


def test_its_table_has_every_status() -> None:
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE) for code in row.split(",")}
    assert listed == RESPONSES.keys() - {200}


# ------------------------------------------------------------------------------------------------- the container


def instructions(word: str) -> list[str]:
    return re.findall(rf"^{word} (.*)$", DOCKERFILE, re.MULTILINE)


def sent() -> list[str]:
    """What .dockerignore lets through: all is left out but what a line with ! names."""
    first, *others = (ROOT / ".dockerignore").read_text().split()
    assert first == "*"
    return [line[1:] for line in others if line.startswith("!")]


def copied() -> list[str]:
    return [source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]]


def test_the_container_is_built_of_what_the_repository_has() -> None:
    assert all((ROOT / source).exists() for source in copied())
    assert sorted(copied()) == sorted(sent()), "what is copied is what .dockerignore lets through"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    facts, wheel = project["project"], project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"README.md", *facts["license-files"], *wheel["only-include"], "pyproject.toml"}
    assert set(copied()) == needed
    (install,) = (line for line in instructions("RUN") if "pip install" in line)
    asked = re.findall(r"\[(.*?)\]", install)[0].split(",")
    assert "serve" in asked and "torch" not in asked and set(asked) <= facts["optional-dependencies"].keys()
    assert all(fnmatch.fnmatch(image, "python:3.*-slim*") for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.M))


def test_the_container_serves_as_a_user_without_rights(run: Callable[..., int], running: Server) -> None:
    (user,), (port,), (command,) = instructions("USER"), instructions("EXPOSE"), instructions("CMD")
    assert user != "root" and f" {user}" in DOCKERFILE.partition(f"USER {user}")[0]
    program, *words = json.loads(command)
    assert program == "restore" and words[words.index("--port") + 1] == port
    assert run(*words, "--help") == 0  # so that every option is known
    (check,) = re.findall(r"CMD (\[.*\])", "\n".join(instructions("HEALTHCHECK")))
    python, *arguments = json.loads(check)
    assert python == "python" and f":{port}/" in check
    healthy = [each.replace(f"127.0.0.1:{port}/", running.url.removeprefix("http://")) for each in arguments]
    assert subprocess.run([sys.executable, *healthy], timeout=HANG).returncode == 0
    elsewhere = [each.replace("/health", "/nothing") for each in healthy]
    assert subprocess.run([sys.executable, *elsewhere], stderr=subprocess.DEVNULL, timeout=HANG).returncode != 0
