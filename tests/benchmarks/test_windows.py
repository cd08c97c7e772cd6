"""The benchmark of tiles, on tiny images."""

from __future__ import annotations

import numpy as np
from windows import side_by_side


def test_digits_side_by_side_are_the_two() -> None:
    digits = np.random.default_rng(0).random((4, 3, 3))
    pairs = side_by_side(digits)
    assert pairs.shape == (2, 3, 6)
    assert np.array_equal(pairs[1], np.concatenate([digits[2], digits[3]], axis=1))
