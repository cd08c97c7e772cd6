"""How far apart two bands of numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from bands import separation


@pytest.mark.parametrize("distance", [4.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_two_bands_are_as_far_apart_as_they_were_drawn(distance: float, share: float) -> None:
    draw = np.random.default_rng(0)
    count = int(2000 * share)
    low, high = draw.normal(0, 2, count), draw.normal(2 * distance, 2, 2000 - count)
    assert separation([*low, *high]) == pytest.approx(distance, rel=0.1)
