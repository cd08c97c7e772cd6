"""A wheel carries the published priors and a page for the index, and what is installed from it finds them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import restore
from restore import zoo

ROOT = Path(__file__).parent.parent
PUBLISHED = sorted(folder.name for folder in (ROOT / "models").iterdir() if folder.is_dir())
FILES = (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD)

# The most bytes of the package's wheel, and what comes before the path in its links to files of the repository.
MOST = 12_000_000
LINKS = re.compile(
    r"https://(?:github\.com/restore-prior/restore/blob|raw\.githubusercontent\.com/restore-prior/restore)/([^/]+)/([^)#\s\"]+)"
)


def run(*command: str | Path, where: Path, **environment: str) -> str:
    """Standard output of a command run in another folder than the repository's; it must succeed."""
    done = subprocess.run(command, cwd=where, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(project: Path, folder: Path) -> Path:
    """A project's wheel, made of its source distribution with what the development environment has."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, project, where=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the priors that only repeat results of papers."""
    return built(ROOT / "models", tmp_path_factory.mktemp("papers"))


def held(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def priors_in(wheel: Path) -> list[str]:
    return sorted(name.split("/")[-2] for name in held(wheel) if name.endswith(zoo.WEIGHTS))


def page(wheel: Path) -> str:
    """The page of the package index."""
    (name,) = (name for name in held(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return str(message_from_bytes(archive.read(name)).get_payload(decode=True), "utf-8")


def check_installed(command: Path, site: Path, where: Path, expected: list[str], **environment: str) -> None:
    """The installed `restore` lists the priors of its own installation and restores with one of them."""
    listed = run(command, "models", "--json", where=where, **environment).splitlines()
    priors = [prior for prior in map(json.loads, listed) if prior["origin"] == "published"]
    assert sorted(prior["name"] for prior in priors) == expected
    assert all(Path(prior["folder"]).is_relative_to(site) for prior in priors)
    image = "assets/digit-noisy.png"
    assert image in run(command, "examples", where=where, **environment).splitlines()
    options = ("--model", zoo.preferred(), "--p", "0.1", "-o", "restored.png", "--overwrite")
    run(command, "denoise", image, *options, where=where, **environment)
    assert (where / "restored.png").stat().st_size > 0


@pytest.mark.thorough
def test_the_wheel_holds_the_package_and_the_priors_and_nothing_else(wheel: Path) -> None:
    names = held(wheel)
    assert {f"restore/models/{name}/{file}" for name in priors_in(wheel) for file in FILES} <= names
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
    assert {name.split("/")[2] for name in names if name.startswith("restore/models/")} == set(priors_in(wheel))
    assert "restore/assets/page-noisy.png" in names
    assert not {name for name in names if name.startswith(("restore/assets/before-", "restore/assets/app"))}
    assert wheel.stat().st_size <= MOST


@pytest.mark.thorough
def test_two_wheels_share_the_priors(wheel: Path, papers: Path) -> None:
    """None is in both; the package's own has those that are chosen by themselves, and those that the README names."""
    ours, theirs = priors_in(wheel), priors_in(papers)
    assert sorted([*ours, *theirs]) == PUBLISHED
    assert {f"restore_prior_papers/{name}/{file}" for name in theirs for file in FILES} <= held(papers)
    assert {name for name in held(papers) if ".dist-info/" not in name and name.split("/")[1] not in theirs} == set()
    chosen = {name for name in PUBLISHED if zoo.describe(ROOT / "models" / name).auto}
    named = set(re.findall(r"(?:--model |model=\"|load\(\"|export )([a-z][\w-]+)", page(wheel))) & set(PUBLISHED)
    assert named and chosen and chosen | named <= set(ours)
    versions = [tomllib.loads((ROOT / place / "pyproject.toml").read_text("utf-8")) for place in (".", "models")]
    assert [each["project"]["version"] for each in versions] == [restore.__version__] * 2


def test_what_a_release_says_is_of_its_version() -> None:
    """The workflow of a release takes its notes from the section of the changelog."""
    assert f"\nversion: {restore.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    (notes,) = (section for section in sections if section.startswith(restore.__version__))
    assert len(notes.splitlines()) > 2
    for place in re.findall(r"\btests/[\w/.]+", (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")):
        assert (ROOT / place).exists(), place


@pytest.mark.thorough
def test_every_link_of_the_page_leads_to_a_file_of_the_tag(wheel: Path) -> None:
    text = page(wheel)
    links = LINKS.findall(text)
    assert not re.findall(r"\]\((?!https://|#)[^)]*\)", text), "a link that only the repository knows"
    assert len(links) > 10
    for tag, path in links:
        assert tag in (f"v{restore.__version__}", "main")
        assert (ROOT / path).exists(), path
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", text)
    assert pictures and all(picture.startswith("https://raw.githubusercontent.com/") for picture in pictures)
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


@pytest.mark.thorough
def test_wheels_unpacked_elsewhere_find_their_priors(wheel: Path, papers: Path, tmp_path: Path) -> None:
    """Dependencies come from this environment, the package itself from the wheels alone."""
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target")
    run(*pip, site, wheel, where=tmp_path)
    command = site / "bin" / "restore"
    check_installed(command, site, tmp_path, priors_in(wheel), PYTHONPATH=str(site))
    missing = [command, "info", priors_in(papers)[0]]
    done = subprocess.run(missing, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True)
    assert done.returncode == 4 and b"restore-prior[papers]" in done.stderr
    with zipfile.ZipFile(papers) as archive:
        archive.extractall(site)
    check_installed(command, site, tmp_path, PUBLISHED, PYTHONPATH=str(site))


@pytest.mark.slow
def test_a_wheel_in_a_clean_environment_finds_its_priors(wheel: Path, tmp_path: Path) -> None:
    """Everything from the package index, as users get it."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, where=tmp_path)
    pip = (environment / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    run(*pip, where=tmp_path, PYTHONPATH="")
    check_installed(environment / "bin" / "restore", environment, tmp_path, priors_in(wheel), PYTHONPATH="")
    # The remedy of an error can be carried out, though no package index knows this package.
    words = [environment / "bin" / "restore", "train", "shapes", "--name", "parts"]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, text=True)
    remedy = shlex.split(done.stderr.partition("; ")[2])
    assert done.returncode == 2 and remedy[-1] == "restore-prior[torch]"
    run(*remedy, "--dry-run", where=tmp_path, PYTHONPATH="")
    listed = json.loads(run(environment / "bin" / "pip", "list", "--format=json", where=tmp_path, PYTHONPATH=""))
    assert not {"torch", "scipy", "scikit-image", "matplotlib", "onnx"} & {each["name"].lower() for each in listed}
