"""The site of the local page: its files, its list of priors, and where it may be written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from priors import random_conditional, random_prior

from restore import zoo
from restore.app import assembly
from restore.errors import ModelError, OutputError
from restore.inference.decision.notes import BLIND
from restore.status import Status

ROOT = Path(__file__).parents[2]

SITE = assembly.PAGE


def test_the_list_of_models_says_what_the_page_needs(site: dict[str, bytes]) -> None:
    listing = json.loads(site["models.json"])
    assert listing["preferred"] == zoo.preferred() and listing["served"]
    plain, seer = listing["priors"]
    header = {"threshold": 127, "task": "", "method": "none", "data": "noise", "whole": False, "hidden": 5}
    page = {"name": "told", "width": 12, "height": 10, "polarity": "light on dark", "example": "digit.png"}
    assert plain.items() >= (header | page | {"triesAgain": True, "blind": BLIND}).items()
    assert plain["inference"].items() >= {"max_iter": 1000, "tol": 0.01, "damping": 0.3}.items()
    assert plain["cutting"] == [] and plain["page"] is None
    assert plain["bytes"] > len("graph of told")
    assert (seer["task"], seer["polarity"], seer["triesAgain"]) == ("flip:0.1", "dark on light", False)


def test_a_site_without_priors_is_refused(priors: list[Path]) -> None:
    with pytest.raises(ModelError):
        assembly.usable([folder for folder in priors if folder.name == "bare"])


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stand-ins for the files of onnxruntime-web."""
    folder = tmp_path_factory.mktemp("ort")
    for name in ("run.mjs", "run.wasm"):
        (folder / name).write_bytes(name.encode())
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture
def write(files: dict[str, Path], priors: list[Path]) -> Callable[..., None]:
    """Write the sound priors."""
    sound = [folder for folder in priors if folder.name in ("told", "seer")]
    return lambda folder, **how: assembly.write(sound, files, folder, **how)


def test_the_site_is_written_for_any_web_server(
    write: Callable[..., None], site: dict[str, bytes], files: dict[str, Path], priors: list[Path], tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "site"
    write(folder)
    written = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    listing = json.loads(written.pop("models.json"))
    assert not listing["served"] and [each["name"] for each in listing["priors"]] == ["told", "seer"]
    expected = {name: content for name, content in site.items() if name != "models.json"}
    expected |= {f"ort/{name}": path.read_bytes() for name, path in files.items()}
    for name in ("told", "seer"):
        for file in (zoo.GRAPH, zoo.WEIGHTS):
            expected[f"models/{name}/{file}"] = (priors[0].parent / name / file).read_bytes()
    assert written == expected


@pytest.mark.parametrize("place", ["mine.txt", ""], ids=["a file", "a folder"])
def test_what_is_in_use_is_refused_and_left_alone(place: str, write: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError):
        write(tmp_path / place, overwrite=bool(place))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    write(tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine" and (tmp_path / "models.json").exists()


@pytest.mark.parametrize("name", ["digit.png", "page.png", "page-scan.png", "silhouette.png"])
def test_the_examples_of_the_page_are_those_drawn_by_our_script(name: str) -> None:
    assert (SITE / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_the_page_uses_the_words_of_the_command_line(site: dict[str, bytes]) -> None:
    priors = random_prior(), random_conditional()
    for listed, prior in zip(json.loads(site["models.json"])["priors"], priors, strict=True):
        assert listed["outcomes"] == {
            status.name.lower(): assembly.outcome(status, prior.description) for status in Status
        }
    # And has none of its own.
    said = "".join(path.read_text() for path in SITE.glob("*.js"))
    assert not any(status.sentence in said for status in Status) and "restores with" not in said


def test_the_page_names_no_place_outside_and_has_no_scripts_or_styles_in_line() -> None:
    for path in SITE.iterdir():
        if path.suffix in {".html", ".js", ".css"}:
            assert "://" not in path.read_text(), path.name
    page = (SITE / "index.html").read_text()
    assert "style=" not in page and "<style" not in page and " on" not in page.replace(" on ", "")
    assert page.count("<script") == page.count("<script type=") == 1
