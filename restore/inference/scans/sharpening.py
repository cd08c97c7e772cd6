"""Sharpen a blurred scan before it is read, so that thin strokes of ink do not pass for thick ones of grey."""

from __future__ import annotations

import numpy as np

from restore.channels.blurred_tones import ENDS, BlurredTones
from restore.inference.scans.blur import tones_through
from restore.inference.scans.classes import tones_of
from restore.inference.scans.local import Local

# The blur, in pixels, that is undone before a scan is read; and the ratio of noise to what is seen, squared, that
# Wiener's filter expects.
WIDTH, NOISE = 1.0, 0.05

# A scan is blurred that much if more blur is found in what it shows when it is sharpened: by more than this, and this
# share of its noise (in distances of ink and paper), which sharpening takes for strokes. Noisier ones are left as they
# are. Chosen on pages in the fonts for training, under blur of 0.3 to 1.2 pixels and noise of 0.03 to 0.2.
MORE, OF_NOISE, NOISIEST = 0.04, 0.5, 0.25

# The blur is found in the middle of a scan, of so many pixels along a side.
SIDE = 1024


def sharpened_if_blurred(grey: np.ndarray) -> np.ndarray | None:
    """A scan (H, W) freed of its blur, as far as that can be done before it is read; None if it has little.

    Blur makes thin strokes thick, which hides part of it: what is seen of them explains the levels with less.
    """
    rows, columns = (slice(max(0, (size - SIDE) // 2), (size + SIDE) // 2) for size in grey.shape)
    levels = grey[rows, columns].astype(np.float32)
    before = _through(levels, levels)
    if before is None:
        return None
    noise = float(before.noise / np.mean(before.white - before.black))
    if noise > NOISIEST:
        return None
    after = _through(levels, sharpened(levels, WIDTH))
    if after is None or after.blur - before.blur < MORE + OF_NOISE * noise:
        return None
    return sharpened(grey, WIDTH)


def _through(levels: np.ndarray, shows: np.ndarray) -> BlurredTones | None:
    """The blur under which what a picture shows has the levels of a scan; None if there is none."""
    tones = tones_of(shows)
    if tones is None:
        return None
    white = (tones.channel.log_odds(shows) > 0).astype(np.float32)
    return tones_through(levels, white, np.ones_like(levels), Local(levels.shape))


def sharpened(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture (H, W) without a Gaussian blur of so many pixels, by Wiener's filter.

    >>> from restore.channels.blurred_tones import smoothed
    >>> page = np.ones((40, 40), np.float32)
    >>> page[:, 19:21] = 0
    >>> blurred = smoothed(page, 1.0)
    >>> round(float(blurred[20, 20]), 2), round(float(sharpened(blurred, 1.0)[20, 20]), 2)
    (0.36, 0.17)
    """
    around = 2 * int(np.ceil(ENDS * width))
    padded = np.pad(grey, around, mode="symmetric")
    rows, columns = np.fft.fftfreq(padded.shape[0])[:, None], np.fft.rfftfreq(padded.shape[1])
    kept = np.exp(-2 * (np.pi * width) ** 2 * (rows**2 + columns**2))
    spectrum = np.fft.rfft2(padded) * kept * (1 + NOISE) / (kept**2 + NOISE)
    height, length = grey.shape
    return np.fft.irfft2(spectrum, s=padded.shape)[around : around + height, around : around + length]
