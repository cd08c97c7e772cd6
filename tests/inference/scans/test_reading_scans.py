"""Pictures read in black and white: levels against those they were drawn with, and greys that are refused."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from skimage import data

from restore.channels.damage import Damage, Observed
from restore.channels.flips import CERTAIN_FIELD
from restore.images.tones import THIRD, Tones, counted
from restore.inference.scans import two_tones
from restore.inference.scans.reading import Reading, read
from restore.inference.scans.two_tones import Local, smoothed, tones_of
from restore.status import Status

SHAPE = (160, 200)


def strokes() -> np.ndarray:
    """Lines of strokes with gaps between them, as on a page; a tenth of it."""
    ink = np.zeros(SHAPE, bool)
    rows = np.arange(SHAPE[0]) % 24 < 8
    ink[np.ix_(rows, np.arange(SHAPE[1]) % 9 < 3)] = True
    ink[:, :10] = ink[:, -10:] = False
    return ink


INK = strokes()
LIGHT = np.linspace(1.0, 0.6, SHAPE[1]) * np.linspace(1.0, 0.9, SHAPE[0])[:, None]


def scanned(noise: float) -> np.ndarray:
    return LIGHT * np.where(INK, 0.2, 0.9) + noise * np.random.default_rng(1).standard_normal(SHAPE)


def answer(
    grey: np.ndarray, p: Any = "scan", hidden: np.ndarray | None = None, careful: bool = True
) -> Reading | Status:
    return read(Observed(grey, Damage(p, hidden=hidden)), None, careful=careful)


def reading(grey: np.ndarray, p: Any = "scan", hidden: np.ndarray | None = None, careful: bool = True) -> Reading:
    result = answer(grey, p, hidden, careful)
    assert isinstance(result, Reading)
    return result


# --- two tones of ink and paper ---


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("turned", [False, True], ids=["dark-on-light", "light-on-dark"])
def test_levels_and_noise_are_recovered(noise: float, turned: bool) -> None:
    grey = 1 - scanned(noise) if turned else scanned(noise)
    levels = tones_of(grey)
    assert levels is not None and levels.distinct
    ink, paper = 0.2 * LIGHT, 0.9 * LIGHT
    black, white = (1 - paper, 1 - ink) if turned else (ink, paper)
    # Within a tenth of their distance, where the light changes by far more.
    assert np.abs(levels.channel.white - white).mean() < 0.05
    assert np.abs(levels.channel.black - black).mean() < 0.08
    assert levels.noise == pytest.approx(noise, rel=0.25, abs=0.03)
    wrong = (levels.channel.log_odds(grey) < 0) != (~INK if turned else INK)
    # Gaussians 0.7 of the light apart are told apart no better than at half of their distance.
    assert wrong.mean() < {0.01: 1e-4, 0.05: 1e-3, 0.1: 0.02, 0.2: 0.15}[noise]


def test_neighbours_that_blur_into_each_other_count_in_part() -> None:
    grey = scanned(0.1)
    levels = tones_of(grey)
    assert levels is not None
    far, near = ((grey - level) ** 2 for level in (levels.channel.black, levels.channel.white))
    wanted = two_tones.SHARE * (far - near) / (2 * levels.noise**2)
    np.testing.assert_allclose(replace(levels.channel, outliers=0.0).log_odds(grey), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["camera", "grass", "coffee"])
def test_photographs_are_no_scans(name: str) -> None:
    photograph = getattr(data, name)()[:300, :300] / 255
    grey = photograph if photograph.ndim == 2 else photograph.mean(2)
    levels = tones_of(grey)
    assert levels is None or not (levels.distinct and levels.even)


@pytest.mark.parametrize("name", ["text", "page"])
def test_photographed_writing_is_a_scan(name: str) -> None:
    grey = getattr(data, name)()
    levels = tones_of(grey / 255)
    assert not Tones.of(counted(grey)).binary and levels is not None and levels.distinct and levels.even
    read = reading(grey / 255)
    assert "read as a scan" in read.notes[0] and set(np.unique(read.picture.values())) == {0, 1}


def test_what_is_called_a_scan_may_have_an_uneven_ground() -> None:
    blotches = 0.1 * smoothed(np.random.default_rng(0).standard_normal(SHAPE), 4.0) / 0.07
    grey = scanned(0.05) + blotches
    levels = tones_of(grey)
    assert levels is not None and not levels.even
    assert answer(grey, "auto") is Status.NOT_INK
    assert "read as a scan" in reading(grey).notes[0]
    assert reading(grey, "auto", careful=False).cut is not None


BLANK = {
    "shaded": 0.9 * LIGHT,
    "noisy": 0.9 * LIGHT + 0.05 * np.random.default_rng(0).standard_normal(SHAPE),
    "noise": np.random.default_rng(0).random(SHAPE),
    "white": np.ones(SHAPE),
    "one-pixel": np.full((1, 1), 0.3),
    "one-row": np.linspace(0, 1, 50)[None],
}


@pytest.mark.parametrize("grey", BLANK.values(), ids=BLANK)
def test_a_blank_page_is_no_scan(grey: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(grey) is Status.NOT_INK


def test_evidence_is_kept_by_the_flip_probabilities() -> None:
    grey = scanned(0.1)
    result, tones = reading(grey), tones_of(grey)
    assert tones is not None
    white, p = result.picture.values(), np.asarray(result.picture.damage.p)
    odds = (2 * white - 1) * (np.log1p(-p) - np.log(p))
    np.testing.assert_allclose(
        odds, tones.channel.log_odds(grey).clip(-CERTAIN_FIELD, CERTAIN_FIELD), rtol=1e-9, atol=1e-9
    )


def test_what_lies_in_a_hole_says_nothing_of_a_scan() -> None:
    grey, hidden = scanned(0.05), np.zeros(SHAPE, bool)
    hidden[60:90, 100:150] = True
    one, other = (reading(np.where(hidden, paint, grey), hidden=hidden).picture for paint in (0.0, 5.0))
    np.testing.assert_array_equal(one.values(), other.values())
    np.testing.assert_array_equal(one.damage.p, other.damage.p)
    assert one.damage.hidden is hidden
    # A scan is restored, hidden or not, in black and white.
    assert reading(grey, hidden=hidden).tones is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(grey, hidden=np.ones(SHAPE, bool)) is Status.NOT_INK


def test_holes_of_a_scan_are_filled_with_the_ink_and_paper_of_their_place() -> None:
    hidden = np.zeros(SHAPE, bool)
    hidden[60:62] = True
    result = reading(scanned(0.05), None, hidden)
    assert result.tones is not None
    black, white = result.tones
    assert np.abs(white - 0.9 * LIGHT).mean() < 0.05 and np.abs(black - 0.2 * LIGHT).mean() < 0.08


# --- black and white, and greys between ---


@pytest.mark.parametrize("levels", [(0.0, 1.0), (0.2, 0.7), (0.0, 1 / 255)])
def test_two_levels_are_black_and_white_whatever_they_are(levels: tuple[float, float]) -> None:
    result = reading(np.where(INK, *levels), "auto")
    np.testing.assert_array_equal(result.picture.values() > 0.5, ~INK)
    assert result.tones == (None if levels == (0.0, 1.0) else levels) and not result.notes
    assert result.picture.damage.p == "auto"
    # Under a mask there may be any.
    hidden = np.zeros(SHAPE, bool)
    hidden[5:20, 30:50] = True
    masked = reading(np.where(hidden, 0.43, np.where(INK, *levels)), None, hidden)
    np.testing.assert_array_equal((masked.picture.values() > 0.5)[~hidden], ~INK[~hidden])


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0])
def test_one_level_is_black_or_white(level: float) -> None:
    result = reading(np.full(SHAPE, level), "auto")
    assert result.tones is None and (result.picture.values() == (level > 0.5)).all()


def soft() -> np.ndarray:
    """Bold strokes with soft edges, as drawn with anti-aliasing."""
    bold = (np.arange(SHAPE[0])[:, None] % 40 < 14) & (np.arange(SHAPE[1]) % 20 < 10)
    return np.rint(255 * smoothed(np.where(bold, 0.1, 0.9), 0.8)) / 255


def test_soft_edges_are_cut_at_a_level_that_is_told() -> None:
    """Otsu's, or the prior's own."""
    result = reading(soft(), "auto")
    cut = Tones.of(counted(np.rint(255 * soft()).astype(np.uint8))).threshold / 255
    np.testing.assert_array_equal(result.picture.values() > 0.5, soft() > cut)
    assert result.cut == pytest.approx(cut, abs=1 / 255) and result.drawn
    own = read(Observed(soft(), Damage("auto")), 0.8, careful=True)
    assert isinstance(own, Reading)
    np.testing.assert_array_equal(own.picture.values() > 0.5, soft() > 0.8)


def test_holes_of_soft_strokes_are_filled_with_their_two_tones() -> None:
    hidden = np.zeros(SHAPE, bool)
    hidden[60:64] = True
    result = reading(soft(), None, hidden)
    assert result.tones == pytest.approx((0.1, 0.9), abs=0.05)


def test_a_map_of_more_tones_than_two_is_refused_unless_it_is_to_be_cut() -> None:
    """Areas of a third tone say more than black and white."""
    drawn = soft()
    drawn[100:130, 20:80] = 0.5
    assert answer(drawn, "auto") is Status.NOT_INK
    assert reading(drawn, "auto", careful=False).cut is not None
    # As an area under the mask it says nothing.
    hidden = np.zeros(SHAPE, bool)
    hidden[100:130, 20:80] = True
    assert reading(drawn, None, hidden).cut is not None
    # A hundredth of the pixels may be stamps and specks.
    few = soft()
    few[100:116, 20:35] = 0.5
    assert THIRD * few.size > 16 * 15 and reading(few, "auto").cut is not None


def grainy(page: np.ndarray, grain: float = 0.02) -> np.ndarray:
    return page + grain * np.random.default_rng(2).standard_normal(page.shape)


def test_what_shows_through_an_empty_leaf_is_no_ink() -> None:
    """Ink needs a contrast to its paper, however well its two levels are told apart."""
    back = smoothed(INK.astype(float), 1.5)
    for depth in (0.04, 0.08, 0.12):
        leaf = grainy(0.92 - depth * back, 0.012)
        assert answer(leaf, "auto") is Status.FAINT, depth
        assert isinstance(answer(leaf, careful=False), Reading)
    assert isinstance(answer(grainy(0.92 - 0.6 * back, 0.012), "auto"), Reading)


def test_paper_that_is_dark_under_a_stain_is_refused() -> None:
    """A threshold makes ink of it, whether it has text on it or not; solid ink is no stain, nor is a fall of light."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    stain = np.where(np.hypot(rows - 70, columns - 110) < 30, 0.5, 1.0)
    page = np.where(INK, 0.15, 0.92)
    assert answer(grainy(stain * page), "auto") is Status.STAINED
    assert isinstance(answer(grainy(page), "auto"), Reading)
    assert isinstance(answer(grainy(LIGHT * page), "auto"), Reading)
    solid = np.where(INK | (stain < 1), 0.15, 0.92)
    assert isinstance(answer(grainy(solid), "auto"), Reading)


def test_grain_tells_scans_from_drawings() -> None:
    assert reading(soft(), "auto").drawn and not reading(grainy(soft()), "auto").drawn
    flips = np.random.default_rng(3).random(SHAPE) < 0.2
    assert reading(np.where(flips, 1 - soft(), soft()), "auto").drawn


# --- sums around pixels ---


def test_sums_are_those_of_the_gaussian() -> None:
    values = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    actual = Local(values.shape).sums(values)
    # Brute force at the cell in row 1, column 2: its centre is at (11.5, 19.5). Weights that are even within cells of 8
    # pixels are those of a Gaussian whose variance is 8² / 12 wider, of 30²: 0.6 % of it in two dimensions, at most.
    rows, columns = np.mgrid[0:20, 0:30]
    weights = np.exp(-((rows - 11.5) ** 2 + (columns - 19.5) ** 2) / (2 * 30.0**2))
    assert actual.shape == (3, 4) and actual[1, 2] == pytest.approx((weights * values).sum(), rel=5e-3)
    assert np.ptp(Local(values.shape).image(np.full((3, 4), 2.0, np.float32))) < 1e-6
