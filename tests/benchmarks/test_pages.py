"""The benchmark of pages, on tiny ones: what its filters, its network and its count of characters do."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unet
from filters import FILTERS, Seen, biharmonic, filled, ising, median, total_variation

from restore.errors import InputError
from training.data import text

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "pages.py"


@pytest.fixture
def families() -> list[text.Family]:
    try:
        return text.families_for_tests()
    except InputError:
        pytest.skip("the fonts for testing are not installed")


@pytest.fixture
def bar() -> np.ndarray:
    """A thick bar of ink."""
    page = np.zeros((48, 48), bool)
    page[16:32, 8:40] = True
    return page


@pytest.mark.parametrize(("repair", "setting"), [(median, 3), (median, 5), (total_variation, 0.6), (ising, 0.6)])
def test_filters_remove_flips(bar: np.ndarray, repair: Callable[[Seen, float], np.ndarray], setting: float) -> None:
    flipped = bar ^ (np.random.default_rng(0).random(bar.shape) < 0.1)
    seen = Seen(flipped, 0.1, np.zeros(bar.shape, bool))
    assert (repair(seen, setting) != bar).mean() < 0.25 * (flipped != bar).mean()


@pytest.mark.parametrize("repair", [biharmonic, ising, lambda seen, _: filled(seen, 3)])
def test_holes_in_the_midst_are_filled_and_nothing_else_is_touched(
    bar: np.ndarray, repair: Callable[[Seen, float], np.ndarray]
) -> None:
    hidden = np.zeros(bar.shape, bool)
    hidden[20:28, 16:24] = hidden[4:12, 4:12] = True
    seen = Seen(bar & ~hidden, 0.0, hidden)
    assert not seen.evidence[hidden].any()
    wrong = repair(seen, 0.6) != bar
    assert not wrong[~hidden].any()
    assert wrong[hidden].mean() < 0.1


@pytest.fixture
def two_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unet, "PAGES", 2)


def test_the_command_prints_a_row_for_each_candidate(
    families: list[text.Family],
    tmp_path: Path,
    two_lessons: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "--model none --pages 1 --shape 96 128 --unet-minutes 0.001 --unet"
    monkeypatch.setattr(sys, "argv", ["pages.py", *words.split(), str(tmp_path)])
    runpy.run_path(str(BENCHMARK), run_name="__main__")
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("|")]
    assert rows[0] == ["", "flip 0.05", "flip 0.1", "flip 0.2", "flip 0.3", "8x8 holes", "settings"]
    assert [row[0] for row in rows[2:-1]] == list(FILTERS) and rows[-1][0].startswith("U-Net")
    noisy = [float(cell) for cell in rows[2][1:5]]
    np.testing.assert_allclose(noisy, [5, 10, 20, 30], rtol=0.1)
