"""Tell black-and-white pictures, whose edges may be soft, from grey ones, and find the level between black and white.

Grey pages are stretched to one contrast: how dark ink is differs by page, and a prior, which sees a part of it, cannot
tell pale ink from what shows through. Training and restoring ask here, so that what one takes for black and white the
other does not refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEVELS = np.arange(256)

# Share of the darkest and of the lightest pixels that say nothing of the range.
_STRAY = 0.01
# The middle of the range, from .25 to .75, and the largest share of pixels in it of a black-and-white picture. The
# digits of MNIST have at most .10 there, the drawings of Omniglot .14, the faces of CBCL at least .21.
_MIDDLE = (0.25, 0.75)
MOST_MIDDLE = 0.2
# The share of pixels that may have a third tone: off black and white by this part of their distance, and equal to
# their neighbours.
THIRD, _APART = 0.01, 0.125

# More pixels than this say nothing new of the levels of a picture.
ENOUGH = 2**20

# What was drawn has a few even tones, and soft edges between them: this share of its pixels at least has one of the
# commonest levels, of which so many count, flipped or not. Scans have grain: of 160 one has .72, all others have .61 at
# most.
_DRAWN = 0.75
_EVEN_TONES = 4

# The levels of ink and of paper that priors learn.
INK_LEVEL, PAPER_LEVEL = 0.2, 0.85

# Priors of pages see averages of squares of so many pixels a side.
SCALE = 4

# Of the squares of a page this share is ink at least, however little is written on it, and this share is no lighter
# than paper (by hand: with .01 for .001 as much is read, and on a page with one word grain is).
INK_SHARE, PAPER_SHARE = 0.001, 0.9

# How much darker than its paper ink is at least, as a share of the paper's level: what is fainter may be grain. What is
# dark on a page is .20 darker, and what shows through an empty leaf .10 at most (`benchmarks/choices/page_limits.py`).
# A blank part that differs by less from the paper around it is paper: blank paper does by .09 of the contrast, drawn
# grey areas and screens by .23 at least (by hand).
FAINTEST = 0.15


@dataclass(frozen=True)
class Tones:
    """The grey levels of pictures.

    Attributes:
        threshold: white is above it, 0 to 254.
        middle: the share of pixels that are neither dark nor light.
        exact: the share of pixels with one of the four commonest levels.
        explained: the share of the variance of levels that two levels explain, one up to the threshold, one above it.
    """

    threshold: int
    middle: float
    exact: float
    explained: float

    @property
    def binary(self) -> bool:
        """True for black and white, False for grey."""
        return self.middle <= MOST_MIDDLE

    @property
    def drawn(self) -> bool:
        """True where most pixels have one of a few levels, as in drawings; False for scans and photographs."""
        return self.exact >= _DRAWN

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Tones:
        """Measure the tones of pictures by how many pixels have each level, (256,); see `counted`.

        The threshold is Otsu's: it parts the levels with the least variance within both parts. Of several such
        thresholds it is the middle one.

        >>> Tones.of(counted(np.array([[20, 20, 20, 240]], np.uint8)))
        Tones(threshold=129, middle=0.0, exact=1.0, explained=1.0)
        """
        below = counts.cumsum().astype(np.float64)
        total = float(counts.sum())
        light = (counts * _LEVELS).cumsum().astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = (light * total - below * light[-1]) ** 2 / (below * (total - below))
        between = np.nan_to_num(between[:-1], nan=0.0, posinf=0.0)
        threshold = int(np.flatnonzero(between == between.max())[[0, -1]].sum() // 2)
        low, high = np.searchsorted(below, (_STRAY * total, (1 - _STRAY) * total))
        first, last = (low + part * (high - low) for part in _MIDDLE)
        inside = counts[(first < _LEVELS) & (last > _LEVELS)].sum()
        exact = np.sort(counts)[-_EVEN_TONES:].sum()
        spread = (counts * _LEVELS.astype(np.float64) ** 2).sum() * total - light[-1] ** 2
        explained = float(between.max() / spread) if spread else 1.0
        return cls(threshold, float(inside / max(total, 1)), float(exact / max(total, 1)), explained)


def counted(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the pixels of each of the 256 grey levels of a uint8 array of any shape; (256,)."""
    return np.bincount(levels.ravel(), minlength=256)


def _middle(shape: tuple[int, ...]) -> tuple[slice, slice]:
    """The rows and columns of the middle of a picture, or all of one that is no larger than what says enough."""
    side = isqrt(ENOUGH)
    rows, columns = (slice(max(0, (size - side) // 2), (size + side) // 2) for size in shape[:2])
    return rows, columns


def mostly_even(levels: Any, hidden: np.ndarray | None = None) -> bool:
    """True where most squares of 2x2 pixels have one level or colour, as in what was drawn; scans have grain.

    Paper that is lit from one side has no grain if it was drawn, and is no such picture: its levels change slowly, so
    that no pixel has the level of those two squares of `SCALE` away.

    Args:
        levels: grey levels (H, W), or colours (H, W, 3).
        hidden: pixels that do not count, (H, W), or None.

    >>> mostly_even(np.tile(np.arange(4.0).repeat(16), (64, 1)))
    True
    >>> mostly_even(np.tile(np.arange(16.0).repeat(4), (64, 1)))
    False
    >>> mostly_even(np.random.default_rng(0).random((32, 32)))
    False
    """
    middle = _middle(levels.shape)
    part = np.asarray(levels[middle])
    part = part.reshape(*part.shape[:2], -1)
    visible = np.ones(part.shape[:2], bool) if hidden is None else ~hidden[middle]
    near, far = (_alike(part, apart)[visible[apart:, apart:]] for apart in (1, 2 * SCALE))
    return bool(near.size and near.mean() > 0.5 and far.size and far.mean() > _STRAY)


def _alike(levels: np.ndarray, apart: int) -> np.ndarray:
    """Where pixels of an image (H, W, channels) equal those so far above, to the left, and both, (H - apart, ...)."""
    corner = levels[apart:, apart:]
    above = corner == levels[:-apart, apart:]
    left = corner == levels[apart:, :-apart]
    both = corner == levels[:-apart, :-apart]
    return np.asarray((above & left & both).all(-1))


def third_tone(grey: Any, threshold: float, hidden: np.ndarray | None = None) -> float:
    """Share of pixels of a picture (H, W) in even parts that are neither black nor white; soft edges are nowhere even.

    Black and white are the medians of the pixels up to and above a threshold in [0, 1], like the grey values.
    """
    middle = _middle(grey.shape)
    part = np.asarray(grey[middle], np.float64)
    visible = np.ones(part.shape, bool) if hidden is None else ~hidden[middle]
    below = part[visible & (part <= threshold)]
    above = part[visible & (part > threshold)]
    black = np.median(below) if below.size else 0.0
    white = np.median(above) if above.size else 1.0
    inner = part[1:, 1:]
    even = _alike(part[..., None], 1) & visible[1:, 1:]
    off = np.minimum(np.abs(inner - black), np.abs(inner - white)) > _APART * (white - black)
    return float((even & off).sum() / max(even.size, 1))


def between_tones(grey: np.ndarray, black: float, white: float) -> np.ndarray:
    """Where grey levels lie between black and white, and near neither, as at soft edges, boolean.

    >>> between_tones(np.array([0.0, 0.3, 0.5, 1.0]), 0.1, 0.9).tolist()
    [False, True, True, False]
    """
    near = _APART * (white - black)
    return np.asarray((grey > black + near) & (grey < white - near))


def stretched(grey: np.ndarray, hidden: np.ndarray | None = None) -> np.ndarray:
    """A page of dark ink, (H, W) in [0, 1], with its ink and its paper at two levels; less so if it is too faint.

    Args:
        grey: its levels.
        hidden: pixels that do not count, boolean (H, W), or None.

    >>> page = np.full((64, 64), 0.6)
    >>> page[20:30, 20:30] = 0.5
    >>> stretched(page)[[0, 25], [0, 25]].astype(float).round(2).tolist()
    [0.85, 0.2]
    """
    squares = averages(grey, SCALE)  # single dark pixels are no ink
    seen = np.ones(squares.shape, bool) if hidden is None else averages(hidden, SCALE) == 0
    counted = squares[seen] if seen.any() else squares
    paper, contrast = paper_and_contrast(counted)
    gain = (PAPER_LEVEL - INK_LEVEL) / contrast
    return np.asarray((PAPER_LEVEL + gain * (grey - paper)).clip(0, 1), np.float32)


def paper_and_contrast(squares: np.ndarray) -> tuple[float, float]:
    """The level of a page's paper, and how much darker its ink is, by the averages of its squares."""
    ink, paper = np.quantile(squares, (INK_SHARE, PAPER_SHARE), method="lower")
    return paper, max(paper - ink, FAINTEST * paper) or 1.0


def averages(values: np.ndarray, side: int) -> np.ndarray:
    """Averages over squares, those at the lower and the right edge over what is there."""
    rows, columns = (np.arange(0, size, side) for size in values.shape)
    high, wide = (np.diff([*range(0, size, side), size]) for size in values.shape)
    sums = np.add.reduceat(np.add.reduceat(values, rows, 0, np.float64), columns, 1)
    return np.asarray(sums / np.outer(high, wide))


def enlarged(squares: np.ndarray, side: int, shape: tuple[int, ...]) -> np.ndarray:
    """What is true of squares, of the pixels of a picture of a shape (H, W) or (H, W, 3)."""
    return np.asarray(squares.repeat(side, 0).repeat(side, 1)[: shape[0], : shape[1]])
