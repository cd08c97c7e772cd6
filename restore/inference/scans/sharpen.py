"""Sharpen a blurred scan before it is read, so that thin strokes do not pass for thick grey ones."""

from __future__ import annotations

import numpy as np

from restore.inference.scans.two_tones import InkLevels, tones_of

# Standard deviations of blur, in pixels, that may be undone; and the noise-to-signal ratio that the filter expects.
WIDTHS = (0.6, 0.9, 1.2)
RATIO = 0.05

# Sharpening raises noise, so a scan with more of it than this share of its contrast is left as it is. Chosen by
# `benchmarks/scans.py --fonts training --seed 7 --noise 0.03 0.05 0.07 0.1 --blur 0.9`, with and without sharpening.
NOISIEST = 0.2

# The side, in pixels, of the middle of a scan in which the blur is estimated.
SIDE = 512

# Pixels by which a picture is continued beyond its edges.
AROUND = 8

# The median of the absolute value of a normal variable, in standard deviations.
MEDIAN = 0.6745


def blur_of(grey: np.ndarray, tones: InkLevels) -> float:
    """The standard deviation of the Gaussian that is best undone in a scan (H, W), in pixels; 0 for none.

    It is that after which the two classes of the scan lie farthest apart, in standard deviations of its levels.
    """
    part = grey[tuple(slice(max(0, (size - SIDE) // 2), (size + SIDE) // 2) for size in grey.shape)]
    if _noise(part) > NOISIEST * tones.contrast:
        return 0.0
    after = {width: tones_of(sharpened(part, width)) for width in (0.0, *WIDTHS)}
    return max(after, key=lambda width: 0.0 if (tones := after[width]) is None else tones.contrast / tones.noise)


def sharpened(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture (H, W) without a Gaussian blur of `width` pixels, by Wiener's filter.

    >>> page = np.ones((40, 40))
    >>> page[:, 19:21] = 0
    >>> bool(np.ptp(sharpened(page, 0.9)) > np.ptp(page))
    True
    """
    if not width:
        return grey
    padded = np.pad(grey, AROUND, mode="symmetric")
    rows, columns = np.fft.fftfreq(padded.shape[0])[:, None], np.fft.rfftfreq(padded.shape[1])
    kept = np.exp(-2 * (np.pi * width) ** 2 * (rows**2 + columns**2))
    spectrum = np.fft.rfft2(padded) * kept * (1 + RATIO) / (kept**2 + RATIO)
    return np.asarray(np.fft.irfft2(spectrum, s=padded.shape)[AROUND:-AROUND, AROUND:-AROUND])


def _noise(grey: np.ndarray) -> float:
    """The standard deviation of white noise, from differences that no edge along an axis has (Donoho, 1995)."""
    crossed = (grey[:-1, :-1] - grey[:-1, 1:] - grey[1:, :-1] + grey[1:, 1:]) / 2
    return float(np.median(np.abs(crossed)) / MEDIAN) if crossed.size else 0.0
