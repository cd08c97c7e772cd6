"""Tell black-and-white pictures, whose edges may be soft, from grey ones, and find the level between black and white.

Training and restoring ask here, so that what one takes for black and white the other does not refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LEVELS = np.arange(256)

# Share of the darkest and of the lightest pixels that say nothing of the range.
_STRAY = 0.01
# The middle of the range, from .25 to .75, and the largest share of pixels in it of a black-and-white picture. The
# digits of MNIST have at most .10 there, the drawings of Omniglot .14, the faces of CBCL at least .21.
_MIDDLE = (0.25, 0.75)
_MOST = 0.2


@dataclass(frozen=True)
class Tones:
    """The grey levels of one or more pictures.

    Attributes:
        threshold: 0 to 254; a pixel above it is white.
        dark, light: the mean level of black and of white pixels, 0 to 255.
        middle: share of the pixels that are neither dark nor light, 0 to 1.
    """

    threshold: int
    dark: float
    light: float
    middle: float

    @property
    def binary(self) -> bool:
        """True for black and white, False for grey."""
        return self.middle <= _MOST

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Tones:
        """Measure the tones of pictures by how many pixels have each level, (256,); see `counted`.

        The threshold is Otsu's: it parts the levels with the least variance within both parts. Of several such
        thresholds it is the middle one.

        >>> Tones.of(counted(np.array([[20, 20, 20, 240]], np.uint8)))
        Tones(threshold=129, dark=20.0, light=240.0, middle=0.0)
        >>> Tones.of(counted(np.arange(256, dtype=np.uint8))).binary
        False
        """
        below, total = counts.cumsum().astype(np.float64), float(counts.sum())
        light = (counts * _LEVELS).cumsum().astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = (light * total - below * light[-1]) ** 2 / (below * (total - below))
        between = np.nan_to_num(between[:-1], nan=0.0, posinf=0.0)
        threshold = int(np.flatnonzero(between == between.max())[[0, -1]].sum() // 2)
        white = threshold < _LEVELS
        low, high = np.searchsorted(below, (_STRAY * total, (1 - _STRAY) * total))
        first, last = (low + part * (high - low) for part in _MIDDLE)
        inside = counts[(first < _LEVELS) & (last > _LEVELS)].sum()
        return cls(threshold, _mean(counts, ~white), _mean(counts, white), float(inside / max(total, 1)))


def counted(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the pixels of each of the 256 grey levels of a uint8 array of any shape; (256,)."""
    return np.bincount(levels.ravel(), minlength=256)


def _mean(counts: NDArray[np.int64], part: NDArray[np.bool_]) -> float:
    return float((counts * _LEVELS)[part].sum() / max(1, counts[part].sum()))
