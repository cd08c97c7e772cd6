"""Sharpen a blurred scan before it is read, so that thin strokes of ink do not pass for thick ones of grey."""

from __future__ import annotations

import numpy as np

from restore.channels.blurred_tones import ENDS, BlurredTones
from restore.inference.scans.blur import tones_through
from restore.inference.scans.classes import tones_of
from restore.inference.scans.local import Local

# Scans that seem to have at least this blur, in pixels, are sharpened as if they had one of these; blur makes strokes
# thick, which hides part of it. The last is the ratio of noise to what is seen, squared, that Wiener's filter expects.
BLURRED, WIDTHS, NOISE = 0.55, (0.8, 1.0, 1.25), 0.05

# By so much less noise the levels have to be explained, as ink and paper that follow noise explain it too; and scans
# with more noise than this, as a share of the distance between ink and paper, are left as they are.
CLEARLY, NOISIEST = 0.98, 0.25

# The blur is found in the middle of a scan, of so many pixels along a side.
SIDE = 1024


def sharpening(grey: np.ndarray) -> float:
    """The blur that a scan (H, W) is to be freed of, in pixels; 0 for none.

    It is the one after whose removal what seems to be ink and paper explains the levels best.
    """
    rows, columns = (slice(max(0, (size - SIDE) // 2), (size + SIDE) // 2) for size in grey.shape)
    levels = grey[rows, columns].astype(np.float32)
    local, seen = Local(levels.shape), np.ones_like(levels)
    best, least = 0.0, np.inf
    for width in (0.0, *WIDTHS):
        sharp = sharpened(levels, width)
        tones = tones_of(sharp)
        if tones is None:
            continue
        white = (tones.channel.log_odds(sharp) > 0).astype(np.float32)
        through = tones_through(levels, white, seen, local)
        if not width and (through is None or through.blur < BLURRED or _noise(through) > NOISIEST):
            return 0.0
        if through is not None and through.noise < least:
            best, least = width, through.noise * (1 if width else CLEARLY)
    return best


def _noise(through: BlurredTones) -> float:
    return float(through.noise / np.mean(through.white - through.black))


def sharpened(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture (H, W) without a Gaussian blur of so many pixels, by Wiener's filter.

    >>> from restore.channels.blurred_tones import smoothed
    >>> page = np.ones((40, 40), np.float32)
    >>> page[:, 19:21] = 0
    >>> blurred = smoothed(page, 1.0)
    >>> round(float(blurred[20, 20]), 2), round(float(sharpened(blurred, 1.0)[20, 20]), 2)
    (0.36, 0.17)
    """
    if not width:
        return grey
    around = 2 * int(np.ceil(ENDS * width))
    padded = np.pad(grey, around, mode="symmetric")
    rows, columns = np.fft.fftfreq(padded.shape[0])[:, None], np.fft.rfftfreq(padded.shape[1])
    kept = np.exp(-2 * (np.pi * width) ** 2 * (rows**2 + columns**2))
    spectrum = np.fft.rfft2(padded) * kept * (1 + NOISE) / (kept**2 + NOISE)
    height, length = grey.shape
    return np.fft.irfft2(spectrum, s=padded.shape)[around : around + height, around : around + length]
