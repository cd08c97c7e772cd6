"""Tell black-and-white pictures, whose edges may be soft, from grey ones, and find the level between black and white.

Training and restoring ask here, so that what one takes for black and white the other does not refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEVELS = np.arange(256)

# Share of the darkest and of the lightest pixels that say nothing of the range.
_STRAY = 0.01
# The middle of the range, from .25 to .75, and the largest share of pixels in it of a black-and-white picture. The
# digits of MNIST have at most .10 there, the drawings of Omniglot .14, the faces of CBCL at least .21.
_MIDDLE = (0.25, 0.75)
_MOST = 0.2
# The share of pixels that may have a third tone: off black and white by this part of their distance, and equal to
# their neighbours; and the side, in pixels, of the middle of a picture where they are counted.
THIRD, _APART, _COUNTED_SIDE = 0.01, 0.125, 1024
# Ink is darker than its paper by at least this share of the paper's level: on the pages of DIBCO 2009 to 2013 by .20 at
# least, and what shows through an empty leaf by .10 at most.
_FAINT = 0.15
# The side of the cells, in pixels, that tell whether ground is dark; their medians are off ink by this part of the
# contrast, and not half of it, and nine in ten pixels are darker than that. The share of such cells that a picture may
# have: on pages of DIBCO that Otsu's threshold spoils 1.2 to 13 %, on others .6 at most (`benchmarks/real_pages.py`).
# And how many it may have in any case. Ink is darker than all but this share of what is darker than half way.
_CELL, _OFF_INK, _HALF, _NOT_PAPER, _DARK, _AREA, _DARKEST = 8, 0.15, 0.5, 0.6, 0.01, 4, 0.2


# The least share of pixels with one of two levels in what was drawn, whose edges may be soft. Scans have grain: one of
# DIBCO 2009 to 2013 has .59, all others have .20 at most.
_DRAWN = 0.6


@dataclass(frozen=True)
class Tones:
    """The grey levels of pictures.

    Attributes:
        threshold: white is above it, 0 to 254.
        middle: the share of pixels that are neither dark nor light.
        exact: the share of pixels with the commonest level up to the threshold, or above it.
    """

    threshold: int
    middle: float
    exact: float

    @property
    def binary(self) -> bool:
        """True for black and white, False for grey."""
        return self.middle <= _MOST

    @property
    def drawn(self) -> bool:
        """True where most pixels have one of two levels, as in drawings; False for scans and photographs."""
        return self.exact >= _DRAWN

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Tones:
        """Measure the tones of pictures by how many pixels have each level, (256,); see `counted`.

        The threshold is Otsu's: it parts the levels with the least variance within both parts. Of several such
        thresholds it is the middle one.

        >>> Tones.of(counted(np.array([[20, 20, 20, 240]], np.uint8)))
        Tones(threshold=129, middle=0.0, exact=1.0)
        """
        below, total = counts.cumsum().astype(np.float64), float(counts.sum())
        light = (counts * _LEVELS).cumsum().astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = (light * total - below * light[-1]) ** 2 / (below * (total - below))
        between = np.nan_to_num(between[:-1], nan=0.0, posinf=0.0)
        threshold = int(np.flatnonzero(between == between.max())[[0, -1]].sum() // 2)
        low, high = np.searchsorted(below, (_STRAY * total, (1 - _STRAY) * total))
        first, last = (low + part * (high - low) for part in _MIDDLE)
        inside = counts[(first < _LEVELS) & (last > _LEVELS)].sum()
        exact = counts[: threshold + 1].max() + counts[threshold + 1 :].max()
        return cls(threshold, float(inside / max(total, 1)), float(exact / max(total, 1)))


def counted(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the pixels of each of the 256 grey levels of a uint8 array of any shape; (256,)."""
    return np.bincount(levels.ravel(), minlength=256)


def has_third_tone(grey: Any, threshold: float, hidden: np.ndarray | None = None) -> bool:
    """True if even parts of a picture (H, W) are neither black nor white: soft edges and scans are nowhere even.

    Black and white are the medians of the pixels up to and above a threshold in [0, 1], like the grey values.
    """
    rows, columns = (slice(max(0, (size - _COUNTED_SIDE) // 2), (size + _COUNTED_SIDE) // 2) for size in grey.shape)
    part = np.asarray(grey[rows, columns], np.float64)
    visible = np.ones(part.shape, bool) if hidden is None else ~hidden[rows, columns]
    below, above = part[visible & (part <= threshold)], part[visible & (part > threshold)]
    black, white = np.median(below) if below.size else 0.0, np.median(above) if above.size else 1.0
    even = (part[1:, 1:] == part[:-1, 1:]) & (part[1:, 1:] == part[1:, :-1]) & visible[1:, 1:]
    off = np.minimum(np.abs(part - black), np.abs(part - white))[1:, 1:] > _APART * (white - black)
    return bool((even & off).sum() > THIRD * even.size)


def faint(black: float, white: float) -> bool:
    """True if what is darker differs too little from its paper to be ink, as what shows through from the other side.

    >>> faint(0.85, 0.92), faint(0.6, 0.92)
    (True, False)
    """
    return white - black < _FAINT * white


def has_dark_ground(grey: np.ndarray, black: Any, white: Any, hidden: np.ndarray | None = None) -> bool:
    """True if ground is darker than half way to ink over an area, as under a stain: a threshold makes ink of it.

    Args:
        grey: levels, (H, W).
        black, white: the levels of what is dark and what is light, numbers or (H, W).
        hidden: pixels that do not count, boolean (H, W).
    """
    depth = (grey - black) / np.maximum(white - black, 1e-6)
    depth = depth if hidden is None else np.where(hidden, 1.0, depth)
    rows, columns = (size // _CELL for size in depth.shape)
    if not rows or not columns:
        return False
    # Most dark pixels may be stains: ink is the darkest part, whatever the noise.
    smooth = np.lib.stride_tricks.sliding_window_view(depth, (3, 3)).mean((2, 3))
    below = smooth[smooth < _HALF]
    ink = min(0.0, float(np.quantile(below, _DARKEST))) if below.size else 0.0
    cells = ((depth - ink) / (1 - ink))[: rows * _CELL, : columns * _CELL].reshape(rows, _CELL, columns, _CELL)
    ranks = _CELL**2 // 2, _CELL**2 * 9 // 10
    ordered = np.partition(cells.transpose(0, 2, 1, 3).reshape(rows * columns, _CELL**2), ranks, axis=1)
    middle, lightest = ordered[:, ranks[0]], ordered[:, ranks[1]]
    dark = (middle > _OFF_INK) & (middle < _HALF) & (lightest < _NOT_PAPER)
    return bool(dark.sum() > max(_AREA, _DARK * dark.size))
