"""A wheel carries the published priors, and what is installed from it finds them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from restore import zoo

ROOT = Path(__file__).parent.parent
PUBLISHED = sorted(folder.name for folder in (ROOT / "models").iterdir() if folder.is_dir())


def run(*command: str | Path, where: Path, **environment: str) -> str:
    """Standard output of a command run in another folder than the repository's; it must succeed."""
    done = subprocess.run(command, cwd=where, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with what the development environment has."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, where=folder)
    (built,) = folder.glob("*.whl")
    return built


def check_installed(command: Path, site: Path, where: Path, **environment: str) -> None:
    """The installed `restore` lists the priors of its own installation and restores with one of them."""
    listed = run(command, "models", "--json", where=where, **environment).splitlines()
    priors = [prior for prior in map(json.loads, listed) if prior["origin"] == "published"]
    assert sorted(prior["name"] for prior in priors) == PUBLISHED
    assert all(Path(prior["folder"]).is_relative_to(site) for prior in priors)
    image = ROOT / "assets" / "digit-noisy.png"
    options = ("--model", zoo.preferred(), "--p", "0.1", "-o", "restored.png")
    run(command, "denoise", image, *options, where=where, **environment)
    assert (where / "restored.png").stat().st_size > 0


@pytest.mark.thorough
def test_the_wheel_holds_the_package_and_the_priors_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert PUBLISHED, "models/ holds no prior"
    for name in PUBLISHED:
        assert {f"restore/models/{name}/{file}" for file in (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD)} <= names
    files = (
        "__init__.py",
        "py.typed",
        "cli/__init__.py",
        "solvers/messages/bp_kernel.c",
        "app/site/index.html",
        "app/site/digit.png",
    )
    assert {f"restore/{file}" for file in files} <= names
    assert {name.split("/")[0].removesuffix(".dist-info") for name in names} == {"restore", wheel.stem.split("-py3")[0]}


@pytest.mark.thorough
def test_a_wheel_unpacked_elsewhere_finds_its_priors(wheel: Path, tmp_path: Path) -> None:
    """Dependencies come from this environment, the package itself from the wheel alone."""
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel)
    run(*pip, where=tmp_path)
    check_installed(site / "bin" / "restore", site, tmp_path, PYTHONPATH=str(site))


@pytest.mark.slow
def test_a_wheel_in_a_clean_environment_finds_its_priors(wheel: Path, tmp_path: Path) -> None:
    """Everything from the package index, as users get it."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, where=tmp_path)
    pip = (environment / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    run(*pip, where=tmp_path, PYTHONPATH="")
    check_installed(environment / "bin" / "restore", environment, tmp_path, PYTHONPATH="")
    listed = json.loads(run(environment / "bin" / "pip", "list", "--format=json", where=tmp_path, PYTHONPATH=""))
    assert not {"torch", "scipy", "scikit-image", "matplotlib", "onnx"} & {each["name"].lower() for each in listed}
