"""Sums around every pixel of a picture, as light and paper change slowly over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Standard deviation, in pixels, of the Gaussian over which a level is averaged: light and paper change over more.
REACH = 30.0

# Side of the cells in which averages are computed.
CELL = 8

# Standard deviations at which a Gaussian ends.
ENDS = 3


class Local:
    """Sums around every pixel of a picture, weighted by a Gaussian of so many pixels, in cells."""

    def __init__(self, shape: Sequence[int], reach: float = REACH) -> None:
        self._gather, self._spread = zip(*(_axis(size, reach) for size in shape), strict=True)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Weighted sums of an image (H, W) around every cell; all pixels of a cell have the weight of its middle."""
        rows, columns = (np.arange(0, size, CELL) for size in values.shape)
        cells = np.add.reduceat(np.add.reduceat(values, rows, 0), columns, 1)
        return np.asarray(self._gather[0] @ cells @ self._gather[1].T)

    def image(self, cells: np.ndarray) -> np.ndarray:
        """Values of cells as an image (H, W), linear between the cells' centres."""
        return np.asarray(self._spread[0] @ cells @ self._spread[1].T)


def _axis(size: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights of an axis's cells around each of them, (cells, cells), and of the cells at its pixels, (size, cells)."""
    count = -(-size // CELL)
    pixels, centres = np.arange(size), (np.arange(count) + 0.5) * CELL - 0.5
    # The last cell may be shorter.
    middles = np.minimum(centres, (np.arange(count) * CELL + size - 1) / 2)
    gather = np.exp(-(((middles - centres[:, None]) / reach) ** 2) / 2)
    place = ((pixels - centres[0]) / CELL).clip(0, count - 1)
    spread = (1 - np.abs(place[:, None] - np.arange(count))).clip(0)
    return gather.astype(np.float32), spread.astype(np.float32)


def smoothed(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture (H, W) after a Gaussian of `width` pixels, or as it is if that is 0; its edges are repeated."""
    if not width:
        return grey
    reach = int(np.ceil(ENDS * width))
    weights = np.exp(-((np.arange(-reach, reach + 1) / width) ** 2) / 2)
    weights = (weights / weights.sum()).astype(grey.dtype)
    for axis in (0, 1):
        margins = [(reach, reach) if each == axis else (0, 0) for each in (0, 1)]
        grey = np.lib.stride_tricks.sliding_window_view(np.pad(grey, margins, "edge"), len(weights), axis) @ weights
    return grey
