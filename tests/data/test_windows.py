"""Windows of pages: another light and size each time, the truth of their place, borders of pages among them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restore.data import windows
from restore.data.windows import drawn, stroke_width, windows_once

SHAPE = (32, 32)


def lined(pitch: int, width: int, side: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """A page of horizontal lines of ink, and where paper is."""
    paper = np.tile((np.arange(side) % pitch >= width)[:, None], (1, side))
    return np.where(paper, 220, 40).astype(np.uint8), paper


@given(st.integers(0, 2**32), st.sampled_from([(32, 32), (24, 40), (33, 35)]))
def test_a_window_has_its_shape_and_the_ink_of_its_place(seed: int, shape: tuple[int, int]) -> None:
    page, paper = lined(20, 5)
    window = drawn(page, paper, shape, np.random.default_rng(seed))
    assert window.levels.shape == window.hidden.shape == window.paper.shape == shape
    assert window.levels.dtype == np.float32 and window.levels.min() >= 0 and window.levels.max() <= 1
    if 0.1 < window.paper.mean() < 0.9:
        assert window.levels[~window.paper].mean() < window.levels[window.paper].mean() - 0.1


def test_the_numbers_drawn_decide_alone() -> None:
    page, paper = lined(20, 5)
    one, same, other = (drawn(page, paper, SHAPE, np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.levels, same.levels)
    assert (one.levels != other.levels).any()


def test_thick_strokes_are_reduced_and_thin_ones_never_lost() -> None:
    """Lines of 2 pixels keep at least their width, and lines of 24 come down to 24 times .35."""
    widths = {}
    for width in (2, 24):
        page, paper = lined(4 * width, width, 400)
        rng = np.random.default_rng(0)
        found = []
        for _ in range(150):
            ink = ~drawn(page, paper, (64, 64), rng).paper
            runs = [run for line in (*ink, *ink.T) for run in _inner_runs(line) if run < 60]
            found += [float(np.median(runs))] if runs else []
        widths[width] = (min(found), max(found))
    assert widths[2][0] >= 2 and widths[2][1] <= 4.5
    assert 0.3 * 24 < widths[24][0] < 0.45 * 24 and widths[24][1] > 30


def _inner_runs(line: np.ndarray) -> list[int]:
    """Lengths of the runs of ink that end within a line."""
    ends = np.flatnonzero(np.diff(line.astype(int)))
    return [int(stop - start) for start, stop in pairwise(ends) if line[start + 1]]


def test_borders_of_a_page_are_seen_as_borders() -> None:
    """Of uniform places one in a hundred would touch a given border; one in twenty at least does."""
    paper = np.ones((400, 400), bool)
    paper[0], paper[-1], paper[:, 0], paper[:, -1] = False, False, False, False
    page, rng = np.where(paper, 220, 40).astype(np.uint8), np.random.default_rng(0)
    inked = [~drawn(page, paper, SHAPE, rng).paper for _ in range(300)]
    outer = [np.stack([ink[0], ink[-1], ink[:, 0], ink[:, -1]]).all(1) for ink in inked]
    assert np.mean(outer, 0).min() > 0.05


def test_some_windows_have_holes_of_every_kind() -> None:
    page, paper = lined(20, 5)
    rng = np.random.default_rng(0)
    shares = np.array([drawn(page, paper, SHAPE, rng).hidden.mean() for _ in range(300)])
    assert 0.5 < (shares == 0).mean() < 0.8 and shares.max() < 0.95
    masks = [windows._holes(SHAPE, np.random.default_rng(seed)) for seed in range(100)]
    # Single pixels, and pieces that hang together.
    inside = [mask[1:-1, 1:-1] & mask[:-2, 1:-1] & mask[2:, 1:-1] for mask in masks if mask.any()]
    assert min(part.mean() for part in inside) < 0.01 and max(part.mean() for part in inside) > 0.05


def test_windows_that_judge_are_drawn_once_with_their_truth() -> None:
    page, paper = lined(20, 5)
    joined = (page & 0xFE | paper).astype(np.uint8)[None]
    first, again = (windows_once(joined, SHAPE, 5, 7) for _ in range(2))
    assert first.shape == (5, *SHAPE) and first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    truth = first & 1 > 0
    assert first[~truth].mean() < first[truth].mean() - 25


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("turned", [False, True])
def test_the_width_of_strokes_is_theirs(width: int, turned: bool) -> None:
    down, across = np.mgrid[:200, :200]
    away = (down - across) / np.sqrt(2) if turned else down
    paper = np.abs((away + 20) % 40 - 20.0 + 0.25) > width / 2
    assert stroke_width(paper) == pytest.approx(width, rel=0.25)
    assert stroke_width(np.ones((9, 9), bool)) == 0
