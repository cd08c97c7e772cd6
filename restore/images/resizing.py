"""Fit a picture to the size of a prior, and back."""

from __future__ import annotations

import numpy as np
from PIL import Image

# Areas are sums of floating-point numbers: differences below this fraction of a cell are rounding.
_ROUNDING = 1e-9


def shrink(pixels: np.ndarray, hidden: np.ndarray | None, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Bring a picture to the size of a prior by averaging the observed pixels over area.

    Each new pixel is the mean of the old ones under it, weighted by the area they share. It is hidden if more than half
    of its area is; one without any observed area gets the mean of all observed pixels (0.5 if there are none).

    Args:
        pixels: (H, W), floats in [0, 1] except for noise; values under `hidden` are ignored, even NaN.
        hidden: (H, W), bool, True where the pixel is not observed; None if all are.
        shape: the wanted (h, w).

    Returns:
        The new pixels, (h, w), float64, in the range of the old ones or [0, 1]; and the new mask, (h, w), bool.
    """
    observed = np.ones(pixels.shape, dtype=bool) if hidden is None else ~hidden
    values = np.where(observed, pixels, 0.0)
    typical = values.sum() / observed.sum() if observed.any() else 0.5
    if pixels.shape == tuple(shape):
        # Averaging could round pixels at the threshold of black and white across it.
        return np.where(observed, values, typical), ~observed
    cell = (pixels.shape[0] / shape[0]) * (pixels.shape[1] / shape[1])
    share = _integrals(observed.astype(np.float64), shape) / cell
    light = _integrals(values, shape) / cell
    small = np.full(shape, typical)
    np.divide(light, share, out=small, where=share > _ROUNDING)
    # Rounding must not leave the range of the pixels.
    return np.clip(small, min(0.0, values.min()), max(1.0, values.max())), share < 0.5 - _ROUNDING


def enlarge(pixels: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Interpolate a picture (h, w) bicubically to a larger shape (H, W), clipped to [0, 1]; float64."""
    image = Image.fromarray(np.ascontiguousarray(pixels, dtype=np.float32))
    resized = image.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    return np.clip(np.asarray(resized, dtype=np.float64), 0.0, 1.0)


def _integrals(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Integrate an image, constant on each of its pixels, over a grid of `shape` equal cells."""
    down, across = (_shared(size, count) for size, count in zip(values.shape, shape, strict=True))
    return down @ values @ across.T


def _shared(size: int, count: int) -> np.ndarray:
    """The length that each of `count` equal cells shares with each of `size` pixels in a row, (count, size)."""
    edges = np.linspace(0, size, count + 1)[:, np.newaxis]
    pixels = np.arange(size)
    return np.diff((edges - pixels).clip(0, 1), axis=0)
