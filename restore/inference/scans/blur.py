"""Find the blur of a scan, and its levels, noise and contrast, from what it shows."""

from __future__ import annotations

import numpy as np

from restore.channels.blurred_tones import BlurredTones, bell, smoothed
from restore.inference.scans.local import Local

# Widths of blur to try first, in pixels, and those around the best of them.
WIDTHS, AROUND = (0.0, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5), (-0.15, 0.0, 0.15)

# A narrower blur is none: a pixel's own weight is then more than 0.97.
LEAST = 0.3

# Share of the pixels within reach by which contrast is drawn to its mean over the scan.
DRAWN = 0.001


def tones_through(
    levels: np.ndarray, white: np.ndarray, seen: np.ndarray, local: Local, widths: tuple[float, ...] = WIDTHS
) -> BlurredTones | None:
    """The blur, the levels and the noise under which a scan is most probable; None if it has no blur.

    Args:
        levels: grey levels (H, W).
        white: the probability of white of every pixel, (H, W).
        seen: 1 for pixels whose level is known, else 0, (H, W).
        local: sums over a neighbourhood in which levels hardly change.
        widths: those to try.
    """
    fits = [_fit(levels, white, seen, local, width) for width in widths]
    best = min(range(len(fits)), key=lambda index: fits[index].noise)
    if 0 < best < len(fits) - 1:
        # The vertex of the parabola through the best width and its neighbours.
        near = slice(best - 1, best + 2)
        curve, slope, _ = np.polyfit(widths[near], [fit.noise**2 for fit in fits[near]], 2)
        if curve > 0:
            fits.append(_fit(levels, white, seen, local, float(-slope / (2 * curve))))
            best = len(fits) - 1
    found = fits[best]
    # Where contrast has no sign, nothing was told apart.
    return None if found.blur < LEAST or (found.white <= found.black).any() else found


def _fit(levels: np.ndarray, white: np.ndarray, seen: np.ndarray, local: Local, width: float) -> BlurredTones:
    """Least squares, expected over what is not certain, for levels that are linear in the blurred white around."""
    through, left = smoothed(white, width), _variance(white * (1 - white), width)
    square = through**2 + left
    ones, whites, squares, greys, products = (
        local.sums(seen * part) for part in (np.ones_like(white), through, square, levels, through * levels)
    )
    count = ones.sum()
    spread, joint = squares - whites**2 / ones, products - whites * greys / ones
    mean = float((products.sum() - whites.sum() * greys.sum() / count) / (squares.sum() - whites.sum() ** 2 / count))
    contrast = (joint + DRAWN * ones * mean) / (spread + DRAWN * ones)
    black = (greys - contrast * whites) / ones
    slope, floor = local.image(contrast), local.image(black)
    off = (levels - floor - slope * through) ** 2 + slope**2 * left
    return BlurredTones(floor, floor + slope, float(((off * seen).sum() / seen.sum()) ** 0.5), width)


def _variance(each: np.ndarray, width: float) -> np.ndarray:
    """The variance of an image of independent pixels after a Gaussian; the square of one is one, narrower by root 2."""
    if not width:
        return each
    return smoothed(each, width / 2**0.5) * np.float32((bell(width) ** 2).sum() ** 2)
