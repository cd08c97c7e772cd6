"""The benchmarks of windows and of what is explained, on tiny images."""

from __future__ import annotations

import explained
import numpy as np
import pytest
from windows import near_borders, seams, side_by_side

import restore
from restore.inference.damage import Damage
from restore.inference.tiles.grid import Axis


def test_pixels_within_two_of_a_border_are_near_it() -> None:
    # Windows of 16 begin every 8 pixels.
    near = near_borders(Axis(40, 16, 8))
    assert np.flatnonzero(near).tolist() == [6, 7, 8, 9, 14, 15, 16, 17, 22, 23, 24, 25, 30, 31, 32, 33]
    # One window has no borders inside.
    assert not near_borders(Axis(12, 16, 8)).any()
    about = restore.load("tap-text").description
    assert np.array_equal(seams((40, 12), about), np.repeat(near[:, None], 12, axis=1))


def test_digits_side_by_side_are_the_two() -> None:
    digits = np.random.default_rng(0).random((4, 3, 3))
    pairs = side_by_side(digits)
    assert pairs.shape == (2, 3, 6)
    assert np.array_equal(pairs[1], np.concatenate([digits[2], digits[3]], axis=1))


@pytest.mark.thorough
def test_what_a_prior_is_behind_decides_whether_an_image_is_refused() -> None:
    engine = restore.load("tap-mnist-25").engine
    stroke = np.zeros((28, 28))
    stroke[5:23, 13:15] = 1
    noise = np.random.default_rng(0).integers(0, 2, (28, 28)).astype(float)
    own, foreign = explained.compared(engine, [stroke, noise], Damage(0.05))
    assert own.behind < 0 < foreign.behind and foreign.refused and not own.refused
    (page,) = explained.modules(1, 0)
    assert explained.sampled(engine, page[:112, :112], Damage(0.05)).behind > own.behind


@pytest.mark.parametrize("kind", [explained.marks("shapes"), explained.modules], ids=["shapes", "modules"])
def test_pages_of_marks_are_black_and_white(kind) -> None:  # type: ignore[no-untyped-def]
    pages = list(kind(2, 1))
    assert len(pages) == 2 and not np.array_equal(*pages)
    for page in pages:
        assert page.shape[0] > 700 and page.shape[1] > 500 and set(np.unique(page)) == {0.0, 1.0}
        assert 0.05 < page.mean() < 0.6
