"""Black and white or grey, and the threshold between the two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.images.tones import Tones, counted


def tones(levels: np.ndarray) -> Tones:
    return Tones.of(counted(levels.astype(np.uint8)))


def test_two_levels_are_cut_in_the_middle() -> None:
    for dark, light in ((0, 255), (10, 11), (254, 255), (0, 1)):
        found = tones(np.array([[dark, light, light]]))
        assert dark <= found.threshold < light
        assert found.middle == 0 and found.binary
    assert tones(np.array([0, 255])).threshold == 127


@settings(max_examples=25)
@given(st.dictionaries(st.integers(0, 255), st.integers(1, 10**6), min_size=2, max_size=40))
def test_the_threshold_is_the_one_that_parts_the_levels_best(present: dict[int, int]) -> None:
    counts = np.zeros(256, dtype=np.int64)
    counts[list(present)] = list(present.values())
    levels = np.arange(256)

    def within(threshold: int) -> float:
        parts = (levels <= threshold, levels > threshold)
        return sum(
            float((counts[part] * (levels[part] - np.average(levels[part], weights=counts[part])) ** 2).sum())
            for part in parts
        )

    best = min(map(within, range(min(present), max(present))))
    assert within(Tones.of(counts).threshold) == pytest.approx(best, rel=1e-6, abs=1e-3)


def test_soft_edges_are_no_grey() -> None:
    ink = np.where(np.arange(12) < 6, 60, 200)[None].repeat(10, 0)
    ink[:, 6] = 130
    assert 0 < tones(ink).middle < 0.1 and tones(ink).binary
    assert tones(np.full((3, 3), 7)).binary
