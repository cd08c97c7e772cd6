"""Sharpening of scans: what is sharpened, and what it leaves wrong."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from restore.channels.blurred_tones import BlurredTones, smoothed
from restore.inference.scans.reading import scan_of
from restore.inference.scans.sharpening import sharpened, sharpened_if_blurred

from restore.inference.damage import Damage


def print_of() -> np.ndarray:
    """A page of print with strokes of two pixels, white being 1."""
    page = Image.new("1", (160, 100), 1)
    for top in range(4, 90, 15):
        ImageDraw.Draw(page).text((6, top), "the quick brown fox jumps", 0, ImageFont.load_default(12))
    return np.kron(page, np.ones((2, 2))).astype(np.float32)


PAGE = print_of()


def scanned(blur: float, noise: float) -> np.ndarray:
    return BlurredTones(0.15, 0.9, noise, blur).corrupt(PAGE, np.random.default_rng(0))


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_blurred_scans_are_sharpened_and_others_are_not(noise: float) -> None:
    assert sharpened_if_blurred(scanned(0.0, noise)) is None and sharpened_if_blurred(scanned(0.3, noise)) is None
    assert sharpened_if_blurred(scanned(1.1, noise)) is not None


def test_noise_is_not_sharpened() -> None:
    """The filter would make it larger than the blur that it undoes."""
    assert sharpened_if_blurred(scanned(0.9, 0.3)) is None


@pytest.mark.parametrize("width", [0.8, 1.0, 1.25])
def test_the_filter_undoes_most_of_a_blur(width: float) -> None:
    blurred = smoothed(PAGE, width)
    assert ((sharpened(blurred, width) - PAGE) ** 2).mean() < 0.7 * ((blurred - PAGE) ** 2).mean()


def test_even_levels_stay() -> None:
    np.testing.assert_allclose(sharpened(np.full((30, 50), 0.3), 1.0), 0.3, atol=1e-12)


def test_a_sharpened_scan_shows_thin_strokes() -> None:
    grey = scanned(1.1, 0.03)
    found = scan_of(grey, Damage("scan"), assumed=False)
    assert found is not None and "was sharpened first" in found.note
    # What lies nearer to the ink than to the paper, in levels that are known.
    halfway = grey > (0.15 + 0.9) / 2
    assert (found.pixels != PAGE).mean() < 0.8 * (halfway != PAGE).mean()
