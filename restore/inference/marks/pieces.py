"""The small pieces of a picture: components of at most so many pixels, with what tells dirt from content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restore.components import components
from restore.inference.restored import STRIP

# The side of cells in which masks are closed, in pixels.
COARSER = 4

# Pieces to a pixel from which a picture is a dither or a halftone, in which nothing can be told.
DITHERED = 1 / 60


@dataclass(frozen=True, eq=False)
class Pieces:
    """Small components of a black and white picture.

    Attributes:
        shape: the height and the width of the picture.
        places: the pixels of all pieces in the picture, as numbers that ascend, (M,).
        owner: the piece of each, (M,).
        sizes: the number of pixels of each piece, (N,).
        dark: True for pieces of ink, (N,).
        boxes: first row and column, and those after the last, (N, 4).
    """

    shape: tuple[int, int]
    places: np.ndarray
    owner: np.ndarray
    sizes: np.ndarray
    dark: np.ndarray
    boxes: np.ndarray

    @classmethod
    def of(cls, ink: np.ndarray, largest: int, whole: np.ndarray | None = None) -> Pieces:
        """The components of at most `largest` pixels; `whole` are the components, if they are known.

        >>> Pieces.of(np.array([[1, 0, 0, 0, 0, 0, 1, 1]], bool), 2).sizes.tolist()
        [1, 2]
        """
        whole = components(ink) if whole is None else whole
        sizes = counted(whole)
        small = sizes <= largest
        places = np.flatnonzero(small[whole])
        owner = (np.cumsum(small) - 1)[whole.ravel()[places]]
        rows, columns = np.divmod(places, ink.shape[1])
        boxes = np.empty((int(small.sum()), 4), int)
        # Rows ascend, and what is set last stays.
        boxes[owner[::-1], 0] = rows[::-1]
        boxes[owner, 2] = rows + 1
        boxes[:, 1] = ink.shape[1]
        boxes[:, 3] = 0
        np.minimum.at(boxes[:, 1], owner, columns)
        np.maximum.at(boxes[:, 3], owner, columns + 1)
        dark = np.zeros(len(boxes), bool)
        dark[owner] = ink.ravel()[places]
        return cls((ink.shape[0], ink.shape[1]), places, owner, sizes[small], dark, boxes)

    @property
    def count(self) -> int:
        return len(self.sizes)

    @cached_property
    def labels(self) -> np.ndarray:
        """The piece of each pixel, (H, W), from 0; -1 outside pieces."""
        labels = np.full(self.shape, -1, np.int32)
        labels.ravel()[self.places] = self.owner
        return labels

    @cached_property
    def inside(self) -> np.ndarray:
        """True for the pixels of pieces, (H, W)."""
        return self._painted(self.places)

    @cached_property
    def centres(self) -> np.ndarray:
        """The mean row and column of each, (N, 2)."""
        sums = [np.bincount(self.owner, values, self.count) for values in np.divmod(self.places, self.shape[1])]
        return np.stack(sums, 1) / self.sizes[:, None].clip(1)

    @cached_property
    def ragged(self) -> np.ndarray:
        """By how many pixels the outline of each is longer than that of a square of its size, (N,)."""
        rows, columns = np.divmod(self.places, self.shape[1])
        rim = np.pad(self.labels, 1, constant_values=-2)
        edges = np.zeros(len(self.places), int)
        for down, across in ((0, 1), (2, 1), (1, 0), (1, 2)):
            edges += rim[rows + down, columns + across] != self.owner
        outline = np.bincount(self.owner, edges, self.count) / self.sizes.clip(1) * self.sizes
        return np.asarray((outline - 4 * np.sqrt(self.sizes)).clip(0))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean of values (H, W) over each piece, (N,)."""
        return np.bincount(self.owner, values.ravel()[self.places], self.count) / self.sizes.clip(1)

    def mask(self, which: np.ndarray) -> np.ndarray:
        """The pixels of pieces, given as booleans (N,), boolean (H, W)."""
        return self._painted(self.places[which[self.owner]])

    def chosen(self, which: np.ndarray) -> Pieces:
        """Some of the pieces, given as booleans (N,)."""
        kept = which[self.owner]
        owner = (np.cumsum(which) - 1)[self.owner[kept]]
        return Pieces(self.shape, self.places[kept], owner, self.sizes[which], self.dark[which], self.boxes[which])

    def _painted(self, places: np.ndarray) -> np.ndarray:
        mask = np.zeros(self.shape, bool)
        mask.ravel()[places] = True
        return mask


def around(mask: np.ndarray, far: int, along: int | None = None) -> np.ndarray:
    """The number of True pixels that are at most `far` rows and `along` columns away from each; the same where none.

    >>> around(np.array([[True, False, False, True]]), 1).tolist()
    [[1, 1, 1, 1]]
    """
    across = far if along is None else along
    found = np.empty(mask.shape, np.int16 if (2 * far + 1) * (2 * across + 1) < 2**15 else np.int32)
    for top in range(0, len(mask), STRIP):  # what is in between stays in a processor's cache
        after = min(len(mask), top + STRIP)
        low = max(0, top - far)
        high = min(len(mask), after + far)
        rows = (low - (top - far), after + far - high)
        padded = np.pad(mask[low:high].astype(found.dtype), (rows, (across, across)))
        found[top:after] = _sums(_sums(padded, 2 * far + 1), 2 * across + 1, 1)
    return found


def closed(mask: np.ndarray, far: int) -> np.ndarray:
    """A mask with the gaps filled that squares which reach `far` pixels do not fit into, to some pixels.

    Beyond its sides all is free. Cells of pixels are True if one of them is, and are closed.

    >>> closed(np.array([[1, 0, 0, 1, 0, 0]], bool).repeat(9, 1), 12).astype(int)[:, ::9].tolist()
    [[1, 1, 1, 1, 0, 0]]
    """
    height, width = mask.shape
    blocks = np.pad(mask, ((0, -height % COARSER), (0, -width % COARSER)))
    coarse = blocks.reshape(len(blocks) // COARSER, COARSER, -1, COARSER).any((1, 3))
    reach = far // COARSER
    free = around(np.pad(coarse, reach + 1), reach) == 0
    inner = slice(reach + 1, -reach - 1)
    filled = (around(free, reach) == 0)[inner, inner]
    return np.asarray(filled.repeat(COARSER, 0).repeat(COARSER, 1)[:height, :width])


def _sums(values: np.ndarray, length: int, axis: int = 0) -> np.ndarray:
    """Sums of so many successive values along an axis, by doubling: of 1, 2, 4 ... values."""
    size = values.shape[axis] - length + 1
    values = np.moveaxis(values, axis, 0)
    total = np.zeros_like(values[:size])
    done = 0
    for power in range(length.bit_length()):
        width = 2**power
        if length & width:
            total += values[done : done + size]
            done += width
        values = values[:-width] + values[width:]
    return np.moveaxis(total, 0, axis)


def counted(numbers: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
    """How many pixels of an image, (H, W), have each number from 0; by strips, as numpy counts copies.

    Args:
        numbers: of the pixels, from 0.
        where: the pixels that count, boolean (H, W); None for all.

    >>> counted(np.array([[0, 2, 2]]), np.array([[True, True, False]])).tolist()
    [1, 0, 1]
    """
    counts = np.zeros(int(numbers.max(initial=-1)) + 1, int)
    for top in range(0, len(numbers), STRIP):
        strip = numbers[top : top + STRIP]
        some = np.bincount(strip.ravel() if where is None else strip[where[top : top + STRIP]])
        counts[: len(some)] += some
    return counts
