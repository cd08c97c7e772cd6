"""What was drawn is exactly even nearly everywhere; scans and photographs have grain."""

from __future__ import annotations

import numpy as np
import pytest

from restore.images.tones import _alike, mostly_even

WINDOW = np.full((120, 160, 3), 0.9)
WINDOW[:20] = np.linspace(0.2, 0.6, 20)[:, None, None]  # a bar with a gradient
WINDOW[40:80, 30:130] = 1.0
WINDOW[50:54, 40:120:3] = 0.0


@pytest.mark.parametrize("levels", [WINDOW, WINDOW[..., 0], np.full((64, 64), 0.5)])
def test_windows_and_blank_pictures_are_mostly_even(levels: np.ndarray) -> None:
    assert mostly_even(levels)


def test_the_least_grain_is_not_even_and_a_colour_is_no_grey() -> None:
    grain = np.random.default_rng(0).integers(-1, 2, WINDOW.shape) / 255
    assert not mostly_even(WINDOW + grain)
    # The same luminance in every pixel, of two colours.
    colours = np.where(np.indices((64, 64)).sum(0)[..., None] % 2, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    assert not mostly_even(colours)


@pytest.mark.parametrize(("share", "even"), [(0.4, False), (0.6, True)])
def test_more_than_half_of_the_squares_decide(share: float, even: bool) -> None:
    levels = np.random.default_rng(1).random((100, 100))
    levels[: round(100 * share)] = 0.3
    assert mostly_even(levels) is even
    # What is hidden does not count.
    hidden = np.zeros(levels.shape, bool)
    hidden[: round(100 * share)] = True
    assert not mostly_even(levels, hidden)
    assert mostly_even(levels, ~hidden)


def test_paper_that_is_lit_from_one_side_is_not_even() -> None:
    """Its levels change by one every few pixels, and by more further off; nor does type change that."""
    shade = np.rint(np.linspace(150, 240, 480)) * np.ones((320, 1))
    shade[20:300:12, 20:460:7] = 30
    assert not mostly_even(shade / 255)
    flat = np.full((320, 480), 240.0)
    flat[20:300:12, 20:460:7] = 30
    assert mostly_even(flat / 255)


@pytest.mark.parametrize("odd", range(4))
def test_all_four_pixels_of_a_square_count_and_the_last_one_has_to_be_seen(odd: int) -> None:
    levels = np.zeros((2, 2, 1))
    assert _alike(levels, 1).all()
    levels.flat[odd] = 1
    assert not _alike(levels, 1).any()
    # Columns are alike in pairs: only their right ones equal what is on their left.
    pairs, left = np.tile(np.arange(4.0).repeat(2), (24, 3)), np.zeros((24, 24), bool)
    left[:, ::2] = True
    assert mostly_even(pairs, left) and not mostly_even(pairs, ~left)


def test_nothing_is_not_even() -> None:
    assert not mostly_even(np.zeros((1, 7)))
    assert not mostly_even(np.zeros((9, 9)), np.ones((9, 9), bool))


def test_of_a_large_picture_the_middle_counts() -> None:
    levels = np.random.default_rng(2).random((1400, 1400))
    levels[150:-150, 150:-150] = 0.5
    assert mostly_even(levels)
