"""Blur of scans: found where it is, undone by a filter that keeps levels, and left alone under noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from restore.inference.scans.sharpen import NOISIEST, WIDTHS, _noise, blur_of, sharpened
from restore.inference.scans.two_tones import tones_of

PAPER, INK = 0.9, 0.2


def page() -> np.ndarray:
    """Ink in strokes of one to four pixels, of several slopes."""
    down, across = np.mgrid[:160, :200]
    thick = 1 + across // 50
    return np.asarray((((across + down // 3) % 17 < thick) | ((down - across // 5) % 23 < thick)) & (across % 90 > 20))


def scanned(blur: float, noise: float) -> np.ndarray:
    grey = gaussian_filter(np.where(page(), INK, PAPER), blur) if blur else np.where(page(), INK, PAPER)
    return np.asarray(grey + noise * np.random.default_rng(0).standard_normal(grey.shape))


def wrong(grey: np.ndarray) -> float:
    """The share of pixels that are on the wrong side of what the levels say."""
    tones = tones_of(grey)
    assert tones is not None
    return float(((tones.channel.log_odds(grey) < 0) != page()).mean())


def estimated_blur(grey: np.ndarray) -> float:
    tones = tones_of(grey)
    assert tones is not None
    return blur_of(grey, tones)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_blur_is_found_and_undoing_it_halves_the_wrong_pixels(noise: float) -> None:
    grey = scanned(0.9, noise)
    width = estimated_blur(grey)
    assert width in WIDTHS
    assert wrong(sharpened(grey, width)) < 0.5 * wrong(grey)


@pytest.mark.parametrize(("blur", "noise"), [(0.0, 0.01), (0.0, 0.1), (0.9, 1.3 * NOISIEST * (PAPER - INK))])
def test_sharp_and_noisy_scans_are_left_alone(blur: float, noise: float) -> None:
    assert estimated_blur(scanned(blur, noise)) == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_filter_keeps_levels_and_undoes_a_gaussian_in_part(width: float) -> None:
    np.testing.assert_allclose(sharpened(np.full((20, 30), 0.7), width), 0.7, atol=1e-12)
    truth = np.where(page(), INK, PAPER)
    grey = gaussian_filter(truth, width)
    np.testing.assert_allclose(sharpened(2 * grey - 1, width), 2 * sharpened(grey, width) - 1, atol=1e-12)
    # Every frequency of which the blur keeps more than RATIO comes nearer to what it was.
    assert np.square(sharpened(grey, width) - truth).mean() < 0.8 * np.square(grey - truth).mean()


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_noise_is_told_from_edges(noise: float) -> None:
    edges = np.where(np.indices((160, 200)).sum(0) % 20 < 10, INK, PAPER)
    boxes = np.where((np.arange(160) % 20 < 10)[:, None], INK, PAPER) * np.ones(200)
    draws = noise * np.random.default_rng(1).standard_normal(boxes.shape)
    # Edges along an axis say nothing; slanted ones are a tenth of the pixels, so the median moves by as much.
    assert _noise(boxes + draws) == pytest.approx(noise, rel=0.05)
    assert _noise(edges + draws) == pytest.approx(noise, rel=0.3)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (3, 3)])
def test_small_scans_pass(shape: tuple[int, int]) -> None:
    grey = np.random.default_rng(2).random(shape)
    assert sharpened(grey, 0.9).shape == shape
    tones = tones_of(grey)
    assert tones is not None and blur_of(grey, tones) in (0.0, *WIDTHS)
