"""The benchmark of tiles, on tiny images."""

from __future__ import annotations

import numpy as np
from windows import near_borders, seams, side_by_side

import restore
from restore.inference.tiles.grid import Axis


def test_pixels_within_two_of_a_border_are_near_it() -> None:
    # Windows of 16 begin every 8 pixels.
    near = near_borders(Axis(40, 16, 8))
    assert np.flatnonzero(near).tolist() == [6, 7, 8, 9, 14, 15, 16, 17, 22, 23, 24, 25, 30, 31, 32, 33]
    # One window has no borders inside.
    assert not near_borders(Axis(12, 16, 8)).any()
    header = restore.load("tap-text").description
    assert np.array_equal(seams((40, 12), header), np.repeat(near[:, None], 12, axis=1))


def test_digits_side_by_side_are_the_two() -> None:
    digits = np.random.default_rng(0).random((4, 3, 3))
    pairs = side_by_side(digits)
    assert pairs.shape == (2, 3, 6)
    assert np.array_equal(pairs[1], np.concatenate([digits[2], digits[3]], axis=1))
