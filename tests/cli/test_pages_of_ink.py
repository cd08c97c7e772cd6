"""Grey pages through the command: read without options, lightened, completed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image

from restore.zoo import reader

SHAPE = (180, 240)


def ink() -> np.ndarray:
    """Lines of strokes, three pixels wide."""
    strokes = np.zeros(SHAPE, bool)
    strokes[np.ix_(np.arange(SHAPE[0]) % 24 < 8, np.arange(SHAPE[1]) % 9 < 3)] = True
    strokes[:, :12] = strokes[:, -12:] = False
    return strokes


def grey() -> np.ndarray:
    """The strokes on paper with grain, in light that falls off."""
    light = np.linspace(0.95, 0.4, SHAPE[1])
    grain = 0.015 * np.random.default_rng(0).standard_normal(SHAPE)
    return np.where(ink(), 0.55, 1.0) * light + grain


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.png"
    Image.fromarray(np.rint(255 * grey().clip(0, 1)).astype(np.uint8)).save(path)
    return path


def levels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("L")) / 255


@pytest.mark.parametrize("words", [[], ["--model", reader()], ["--p", "scan"]], ids=["no options", "named", "scan"])
def test_a_page_in_uneven_light_is_read(
    run: Run, page: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", page, "--json", *words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["model"] == reader() and any("read as a page" in note for note in record["notes"])
    found = levels(page.with_name("page.restored.png"))
    assert set(np.unique(found)) == {0, 1} and ((found == 0) != ink()).mean() < 0.01
    # No threshold does it: paper on the right is darker than ink on the left.
    assert min(((grey() < level) != ink()).mean() for level in np.linspace(0, 1, 51)) > 0.02


def test_a_lightened_page_has_white_paper_and_its_own_ink(
    run: Run, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", page, "--soft") == 0
    assert "changed between ink and paper" in capsys.readouterr().err
    found = levels(page.with_name("page.restored.png"))
    inner = np.zeros(SHAPE, bool)  # away from edges
    inner[:, 1:-1] = ink()[:, :-2] & ink()[:, 1:-1] & ink()[:, 2:]
    near = np.zeros(SHAPE, bool)
    near[:, 3:-3] = np.lib.stride_tricks.sliding_window_view(ink(), 7, 1).any(2)
    assert np.abs(found[inner] - 0.55).mean() < 0.08 and found[~near].mean() > 0.98


def test_only_the_hole_of_a_page_is_filled(run: Run, page: Path, tmp_path: Path) -> None:
    hidden = np.zeros(SHAPE, np.uint8)
    hidden[48:52, 30:90] = 255
    Image.fromarray(hidden).save(tmp_path / "mask.png")
    assert run("complete", page, "--mask", tmp_path / "mask.png") == 0
    found, before = levels(page.with_name("page.restored.png")), levels(page)
    np.testing.assert_array_equal(found[hidden == 0], before[hidden == 0])
    assert np.abs(found - grey())[hidden > 0].mean() < 0.15


def test_a_reader_takes_no_level_and_undoes_no_task(run: Run, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("denoise", page, "--model", reader(), "--p", "0.1") == 2
    assert "grey pages" in capsys.readouterr().err
    assert run("evaluate", reader(), "--data", page.parent, "--task", "flip:0.1") == 2
    assert "flip:0.1" in capsys.readouterr().err
    assert run("evaluate", reader(), "--card") == 2
    assert "grey pages" in capsys.readouterr().err
