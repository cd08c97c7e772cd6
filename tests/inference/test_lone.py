"""Flips found by lone pixels: against what was flipped, on drawings that tell nothing of it by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from restore.inference.noise.lone import ENOUGH, ERRORS, flips_of

import restore
from restore.channels.bit_flip import LEVELS

# Bars of 3 to 9 pixels both ways: every pixel is beside one of its own colour, so none is lone by itself.
BARS = np.repeat(np.arange(60) % 2, np.tile([3, 9, 4, 7, 5, 6], 10)) > 0
DRAWN = BARS[:300, None] ^ BARS[None, :300]


def flipped(p: float | np.ndarray, seed: int = 0) -> np.ndarray:
    return np.asarray(DRAWN ^ (np.random.default_rng(seed).random(DRAWN.shape) < p))


def everywhere(image: np.ndarray) -> np.ndarray:
    return np.ones(image.shape, bool)


@pytest.mark.parametrize("p", [0.0, 0.01, 0.05, 0.1, 0.2])
def test_the_share_is_that_of_flips(p: float) -> None:
    """Up to there, eight neighbours seldom agree by chance: at a corner three of them have to be flipped."""
    noisy = flipped(p)
    found = flips_of(noisy, everywhere(noisy))
    assert found is not None and found.places is None
    # At least a tenth of the pixels are amid one colour before they are flipped, and (1 - p)^8 of them after it.
    surrounded = 0.1 * noisy.size * (1 - p) ** 8
    assert abs(found.rate - p) <= LEVELS.levels[0] + 6 * (p * (1 - p) / surrounded) ** 0.5 + 0.1 * p
    assert found.alike


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 3))
def test_turning_an_image_changes_nothing(seed: int, invert: bool, quarters: int) -> None:
    noisy = np.random.default_rng(seed).random((40, 50)) < 0.1
    turned = np.rot90(noisy ^ invert, quarters)
    first, second = (flips_of(each, everywhere(each)) for each in (noisy, turned))
    assert first is not None and second is not None
    assert (first.rate, first.alike) == (second.rate, second.alike)


def test_one_colour_that_flips_more_is_seen() -> None:
    faded = np.where(DRAWN, flipped(0.2), DRAWN)
    found = flips_of(faded, everywhere(faded))
    assert found is not None and not found.alike


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_nothing_drawn(share: float, seed: int) -> None:
    noise = np.random.default_rng(seed).random((400, 400)) < share
    found = flips_of(noise, everywhere(noise))
    assert found is not None and not found.drawn
    drawn = flips_of(flipped(0.2, seed), everywhere(DRAWN))
    assert drawn is not None and drawn.drawn


def test_hidden_pixels_tell_nothing() -> None:
    noisy, seen = flipped(0.1), np.ones(DRAWN.shape, bool)
    seen[:, 150:] = False
    found = flips_of(noisy, seen)
    noisy[:, 150:] = np.random.default_rng(1).random((300, 150)) < 0.5
    again = flips_of(noisy, seen)
    assert found is not None and again is not None and found.rate == again.rate
    assert flips_of(noisy, np.zeros(noisy.shape, bool)) is None


def test_few_pixels_tell_nothing() -> None:
    for shape in ((1, 500), (2, 500), (11, 11)):
        assert flips_of(np.zeros(shape, bool), np.ones(shape, bool)) is None
    enough = np.zeros((12, 12), bool)
    assert (enough.shape[0] - 2) ** 2 >= ENOUGH and flips_of(enough, everywhere(enough)) is not None


def test_places_with_flips_are_found() -> None:
    where = np.where(np.arange(300) < 150, 0.2, 0.0)
    found = flips_of(noisy := flipped(where), everywhere(noisy))
    assert found is not None and found.places is not None
    left, right = found.places[:, :100], found.places[:, 220:]
    # Within a place of 16 pixels, some 2 pi 16^2 / 10 (1 - p)^8 are surrounded; the mean of 100 columns errs less.
    assert abs(left.mean() - 0.2) < ERRORS * (0.16 / 27) ** 0.5 and right.mean() < 0.01
    assert found.note == f"flips differ from place to place: p from 0.002 to {found.places.max():.2g}"


def test_a_dither_is_no_noise() -> None:
    """Of a chequered ground nearly every surrounded pixel differs: more than flips can, so it is refused."""
    rows, columns = np.indices((120, 120))
    dithered = (rows + columns) % 2 == 0
    dithered[::3, ::3] = True
    with pytest.raises(restore.RestoreError):
        restore.denoise(dithered)


def test_one_half_with_flips_is_restored_and_the_other_left() -> None:
    rows, columns = np.indices((200, 240))
    disc = (rows - 100) ** 2 + (columns - 120) ** 2 < 80**2
    noisy = disc ^ (np.random.default_rng(0).random(disc.shape) < np.where(np.arange(240) < 120, 0.15, 0.0))
    clean = restore.denoise(noisy)
    left, right = slice(0, 110), slice(130, None)
    assert (clean != disc)[:, left].sum() < (noisy != disc)[:, left].sum() / 5
    np.testing.assert_array_equal(clean[:, right], disc[:, right])
