"""The tutorial: its blocks run, make the pictures it shows, and say what it says they say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from PIL import Image
from scripts import module

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()

# What takes long on the page, and does not here. What follows the last of it are other ways to train.
# So short a training recognises little.
BRIEF = {
    '("clean", "test", 100)': '("clean", "test", 20)',
    "--model shapes --p auto -o restored/\n": "--model shapes --p auto --force -o restored/\n",
    "--name shapes --method tap\n": "--name shapes --method tap --hidden 20 --epochs 1\n",
}
LAST = "## Longer runs"


tutorial = module(ROOT / "docs" / "tutorial.py")


def wording(text: str) -> set[str]:
    """Lines without figures, what is in brackets, and images that came back as they came; "..." becomes "#".

    Other runs have others of these.
    """
    return {re.sub(r"; \d+ as they came.*|\(.*\)|[\d.:,]+", "#", line).rstrip("#") for line in text.splitlines()}


def followed(page: str, folder: Path) -> None:
    """Run a page, and compare the outcome with what it shows."""
    blocks = tutorial.blocks(page)
    said = tutorial.run([block for block in blocks if block.language != "text"], folder)
    heard: set[str] = set()
    for block in blocks:
        if block.language != "text":
            heard = wording(next(said))
        else:
            missing = wording(block.code) - {"", "#"} - heard
            assert not missing, (missing, heard)
    for name in tutorial.shown(page):
        with Image.open(folder / name) as made, Image.open(tutorial.PICTURES / name) as kept:
            assert made.width == kept.width


def shortened(page: str, words: dict[str, str]) -> str:
    for long, short in words.items():
        assert page.count(long) == 1, long
        page = page.replace(long, short)
    return page


@pytest.fixture
def without_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation in which no graph is made, which would take longest and has tests of its own."""
    place = tmp_path / "without"
    place.mkdir()
    (place / "sitecustomize.py").write_text("import sys\nsys.modules['onnx'] = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")])))


@pytest.mark.thorough
@pytest.mark.usefixtures("without_onnx")
def test_the_page_can_be_followed_up_to_longer_runs(tmp_path: Path) -> None:
    page = PAGE.partition(LAST)[0]
    assert page != PAGE and len(tutorial.shown(page)) == len(tutorial.shown(PAGE)) == 4
    followed(shortened(page, BRIEF), tmp_path)


@pytest.mark.slow
def test_the_page_can_be_followed_word_for_word(tmp_path: Path) -> None:
    followed(PAGE, tmp_path)


def test_the_page_shows_the_pictures_that_are_kept() -> None:
    kept = sorted(path.name for path in tutorial.PICTURES.iterdir())
    assert kept == sorted(tutorial.shown(PAGE))
    assert sum((tutorial.PICTURES / name).stat().st_size for name in kept) < 150_000
