"""The page on what `restore` is for: it shows what its script draws and runs, and what the commands say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.peers.what_for import PICTURES, cells, refusal, sheet
from benchmarks.pictures.ten import EXAMPLES, REFUSED, example

PAGE = (PICTURES.parent / "what-for.md").read_text(encoding="utf-8")
ROWS = {row.split("`")[1]: row for row in PAGE.splitlines() if row.startswith("|") and "`" in row}


def figures(cell: str) -> list[float]:
    return [float(each) for each in re.findall(r"\d+\.\d+", cell)]


def test_the_page_shows_every_picture_that_is_kept() -> None:
    kept = sorted(path.name for path in PICTURES.iterdir())
    assert kept == sorted(re.findall(r"\(what-for/(.+?)\)", PAGE)) == sorted(f"{name}.png" for name in EXAMPLES)
    sizes = [(PICTURES / name).stat().st_size for name in kept]
    assert max(sizes) < 300_000 and sum(sizes) < 1_500_000


@pytest.mark.usefixtures("fonts")
@pytest.mark.parametrize("name", ["digit", "icon", "plan", "form"])
def test_what_came_in_is_in_the_picture_of_the_page(name: str) -> None:
    shown = example(name)
    drawn = np.asarray(sheet(shown))
    with Image.open(PICTURES / f"{name}.png") as kept:
        assert kept.width > 3 * drawn.shape[1]
        assert (np.asarray(kept)[:, : drawn.shape[1]] == drawn).all()
    assert shown.command in ROWS


@pytest.mark.thorough
@pytest.mark.usefixtures("fonts")
@pytest.mark.parametrize("name", ["page", "icon", "form"])
def test_the_table_says_what_the_commands_do(name: str, tmp_path: Path) -> None:
    """Another processor may round otherwise, and so decide a few pixels that are in doubt."""
    title, command, prior, *scores = cells(name, tmp_path)
    known = [cell.strip() for cell in ROWS[command.strip("`")].strip("|").split("|")]
    assert known[:3] == [title, command, prior]
    for told, found in zip(known[3:], scores, strict=True):
        assert figures(told) == pytest.approx(figures(found), rel=0.05, abs=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_as_the_page_says(name: str, tmp_path: Path) -> None:
    assert refusal(name, tmp_path) in PAGE
