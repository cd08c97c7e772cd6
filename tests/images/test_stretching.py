"""Pages are read at one contrast, however dark their ink is; and by the levels of pixels, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restore.channels.damage import Damage, Observed
from restore.images.tones import INK_LEVEL, INK_SHARE, PAPER_LEVEL, averages, stretched
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans.reading import read
from restore.inference.scans.sheet import MISLEADING
from restore.zoo.description import Description

# Thick lines with soft edges, 1 is ink.
SHAPE = (80, 120)
INK, EDGE = np.arange(80) % 20 < 8, np.isin(np.arange(80) % 20, (8, 19))
DRAWN = (INK + 0.5 * EDGE)[:, None] + np.random.default_rng(0).normal(0, 0.02, SHAPE)


def page(ink: float, paper: float) -> np.ndarray:
    return paper + (ink - paper) * DRAWN


@given(st.floats(0.02, 0.7), st.floats(0.25, 1.0))
def test_the_levels_of_ink_and_of_paper_do_not_matter(ink: float, share: float) -> None:
    pale = page(ink, ink + share * (1 - ink))
    contrast = share * (1 - ink) / (ink + share * (1 - ink))
    if contrast > 0.2:
        np.testing.assert_allclose(stretched(pale), stretched(page(0.0, 1.0)), atol=1e-5)
    clear = stretched(page(0.0, 1.0))
    assert np.median(clear[INK]) == pytest.approx(INK_LEVEL, abs=0.05)
    assert np.median(clear[~INK]) == pytest.approx(PAPER_LEVEL, abs=0.05)


def test_a_page_with_one_word_is_stretched_no_further_than_a_full_one() -> None:
    grey = 0.8 + np.random.default_rng(1).normal(0, 0.02, (400, 400))
    grey[100:112, 100:120] = 0.2
    assert (12 * 20) / grey.size > INK_SHARE
    told = stretched(grey)
    assert told[100:112, 100:120].mean() == pytest.approx(INK_LEVEL, abs=0.03)
    assert told[200:].std() < 0.03


def test_grain_is_no_ink_however_blank_a_page_is() -> None:
    """What is stretched most has the least contrast that ink may have."""
    grey = 0.8 + np.random.default_rng(2).normal(0, 0.01, (200, 200))
    assert stretched(grey).std() < 0.08
    assert (stretched(np.full((8, 8), 0.3)) == np.float32(PAPER_LEVEL)).all()
    assert np.isfinite(stretched(np.zeros((8, 8)))).all()


def test_hidden_pixels_do_not_count() -> None:
    grey = page(0.3, 0.7)
    hidden = np.zeros(SHAPE, bool)
    hidden[30:50, 20:60] = True
    spoilt = np.where(hidden, 0.0, grey)
    np.testing.assert_allclose(stretched(spoilt, hidden)[~hidden], stretched(grey)[~hidden], atol=0.02)
    assert abs(stretched(spoilt)[~hidden] - stretched(grey)[~hidden]).mean() > 0.05
    assert np.isfinite(stretched(spoilt, np.ones(SHAPE, bool))).all()


@given(st.integers(1, 19), st.integers(1, 19), st.integers(1, 6), st.integers(0, 99))
def test_averages_are_of_what_is_there(height: int, width: int, side: int, seed: int) -> None:
    values = np.random.default_rng(seed).random((height, width))
    small = averages(values, side)
    assert small.shape == (-(-height // side), -(-width // side))
    for row, column in np.ndindex(small.shape):
        square = values[row * side : (row + 1) * side, column * side : (column + 1) * side]
        assert small[row, column] == pytest.approx(square.mean(), abs=1e-9)


def said(page: np.ndarray) -> np.ndarray:
    return np.where(page < 0.5, 0.3, 0.9).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Unsure:
    """A reader that goes by what it sees at each pixel alone."""

    real: PictureEngine
    backend: str = "test"
    light_ground: bool = True
    part: int = 512

    @property
    def header(self) -> Description:
        return self.real.header

    def solve(self, pictures: np.ndarray, damage: Damage, effort: str = "full") -> Posterior:
        means = said(pictures)
        return Posterior.of_pixels(means, means * (1 - means))


@dataclass(frozen=True, eq=False)
class Told:
    """Priors that read a page."""

    reader: Unsure

    @property
    def parts(self) -> PictureEngine:
        raise AssertionError("nobody asks what is a page where it is told")


@pytest.mark.parametrize("inverted", [False, True])
def test_the_log_odds_of_a_prior_and_of_levels_are_added(inverted: bool) -> None:
    grey = page(0.4, 0.7)
    grey = 1 - grey if inverted else grey
    hidden = np.zeros(SHAPE, bool)
    hidden[50:70, 30:60] = True
    told = Told(Unsure(Engines(Options()).reader))
    result = read(
        Observed(grey, Damage("scan", hidden=hidden)), None, told, inverted, lambda share: None, careful=False
    )
    assert result.page is not None and result.sheet is not None
    dark = 1 - grey if inverted else grey
    paper = said(stretched(dark, hidden)).astype(float)
    levels = result.sheet.log_odds(dark, MISLEADING)
    wanted = np.log(paper / (1 - paper)) + levels
    means = 1 - result.page.means[0] if inverted else result.page.means[0]
    np.testing.assert_allclose(means[~hidden], (1 / (1 + np.exp(-wanted)))[~hidden], atol=1e-4)
    assert abs(levels).max() > 1 and set(np.round(means[hidden], 3)) <= {np.float32(0.3), np.float32(0.9)}
    np.testing.assert_allclose(result.page.variances[0], means * (1 - means), atol=1e-5)
