"""The site of the local page: its files, its list of priors, and where it may be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from priors import random_conditional, random_prior
from restore.inference.pictures import INVERTED, outcome
from restore.inference.windows.tally import BLIND

from restore import zoo
from restore.app import assembly
from restore.errors import ModelError, OutputError
from restore.marginals import Status

ROOT = Path(__file__).parents[2]

SITE = Path(assembly.__file__).parent / "site"


def test_the_site_is_the_page_the_runtime_and_the_priors_with_a_graph(site: assembly.Site) -> None:
    page = {path.name for path in SITE.iterdir() if path.is_file()}
    assert {"index.html", "page.js", "worker.js", "style.css"} <= page
    graphs = {f"models/{name}/{file}" for name in ("told", "seer") for file in (zoo.GRAPH, zoo.WEIGHTS)}
    assert set(site) == page | graphs | {"ort/run.mjs", "ort/run.wasm", "models.json"}


def test_the_list_of_models_says_what_the_page_needs(site: assembly.Site) -> None:
    listing = json.loads(bytes(site["models.json"]))
    assert listing["preferred"] == zoo.PREFERRED_BINARY
    told, seer = listing["priors"]
    assert told == {
        "name": "told",
        "width": 12,
        "height": 10,
        "hidden": 5,
        "threshold": 127,
        "conditional": False,
        "task": "",
        "polarity": "light on dark",
        "method": "none",
        "data": "noise",
        "inference": {"max_iter": 1000, "tol": 0.01, "damping": 0.3},
        "example": "digit.png",
        "triesAgain": True,
        "tiling": {"overlap": 1, "rounds": 1, "worth": 0.15, "least": 1.3, "neighbours": 0.0},
        "inverted": INVERTED,
        "blind": BLIND,
        "outcomes": told["outcomes"],
        "bytes": told["bytes"],
    }
    assert told["bytes"] > len("graph of told")
    assert (seer["conditional"], seer["task"], seer["polarity"]) == (True, "flip:0.1", "dark on light")
    assert not seer["triesAgain"]


def test_a_site_without_priors_is_refused(files: dict[str, Path], priors: list[Path]) -> None:
    with pytest.raises(ModelError, match=r"no prior has a solver\.onnx"):
        assembly.collect(files, [folder for folder in priors if folder.name == "bare"])


def test_the_site_is_written_for_any_web_server(site: assembly.Site, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "site"
    assembly.write(site, folder)
    written = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert written == {name: part if isinstance(part, bytes) else part.read_bytes() for name, part in site.items()}


def test_a_folder_in_use_is_refused_and_left_alone_unless_overwriting(site: assembly.Site, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="exists already; give --overwrite"):
        assembly.write(site, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assembly.write(site, tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine" and (tmp_path / "models.json").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_place_of_the_folder_is_refused(site: assembly.Site, tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        assembly.write(site, tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["digit.png", "page.png", "silhouette.png"])
def test_the_examples_of_the_page_are_those_drawn_by_our_script(name: str) -> None:
    assert (SITE / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_the_page_uses_the_words_of_the_command_line(site: assembly.Site) -> None:
    priors = random_prior(), random_conditional()
    for listed, prior in zip(json.loads(bytes(site["models.json"]))["priors"], priors, strict=True):
        assert listed["outcomes"] == {status.name.lower(): outcome(status, prior.description) for status in Status}
    # And has none of its own.
    said = (SITE / "outcome.js").read_text()
    assert not any(status.sentence in said for status in Status) and "trained with" not in said


def test_the_page_names_no_place_outside() -> None:
    for path in SITE.iterdir():
        if path.suffix in {".html", ".js", ".css"}:
            assert "://" not in path.read_text(), path.name


def test_the_page_has_no_scripts_or_styles_in_line() -> None:
    page = (SITE / "index.html").read_text()
    assert "style=" not in page and "<style" not in page and " on" not in page.replace(" on ", "")
    assert page.count("<script") == page.count("<script type=") == 1
