"""The channel of scans: its log-odds, and what bounds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from restore.channels.flips import TwoTone

GREY = np.linspace(-0.5, 1.5, 41)


def test_log_odds_are_those_of_the_densities() -> None:
    channel = TwoTone(0.2, 0.8, 0.15, outliers=0.05)
    # scipy's densities, and a uniform one over twice the distance of 0.6.
    white, black = (0.95 * norm.pdf(GREY, level, 0.15) + 0.05 / 1.2 for level in (0.8, 0.2))
    np.testing.assert_allclose(channel.log_odds(GREY), np.log(white / black), rtol=1e-10, atol=1e-12)


def test_outliers_bound_what_a_pixel_says() -> None:
    odds = TwoTone(0.2, 0.8, 0.01).log_odds(np.linspace(-3, 4, 10_001))
    # A pixel at a level against one that only an outlier explains.
    most = np.log1p(0.99 / (0.01 * np.sqrt(2 * np.pi)) / (0.01 / 1.2))
    assert TwoTone(0.2, 0.8, 0.01).log_odds(np.array([0.8, 0.2])) == pytest.approx([most, -most])
    assert np.abs(odds).max() < most + 1e-9
    assert abs(odds[0]) < 1e-9 and abs(odds[-1]) < 1e-9


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_shifted_and_scaled_it_says_the_same(shift: float, scale: float) -> None:
    first = TwoTone(0.2, 0.8, 0.15).log_odds(GREY)
    other = TwoTone(scale * 0.2 + shift, scale * 0.8 + shift, scale * 0.15).log_odds(scale * GREY + shift)
    np.testing.assert_allclose(other, first, atol=1e-8)
