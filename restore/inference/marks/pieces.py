"""The small pieces of a picture: components of at most so many pixels, with what tells dirt from content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restore.components import components

# Pieces to a pixel from which a picture is a dither or a halftone, in which nothing can be told.
DITHERED = 1 / 60


@dataclass(frozen=True, eq=False)
class Pieces:
    """Small components of a black and white picture.

    Attributes:
        labels: the piece of each pixel, (H, W), from 0; -1 outside pieces.
        sizes: the number of pixels of each, (N,).
        dark: True for pieces of ink, (N,).
        boxes: first row and column, and those after the last, (N, 4).
    """

    labels: np.ndarray
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
        small = np.bincount(whole.ravel()) <= largest
        labels = np.where(small, np.cumsum(small) - 1, -1).astype(np.int32)[whole]
        rows, columns = np.nonzero(labels >= 0)
        owner, count = labels[rows, columns], int(small.sum())
        low, high = np.full((count, 2), max(ink.shape)), np.zeros((count, 2), int)
        places = np.stack([rows, columns], 1)
        np.minimum.at(low, owner, places)
        np.maximum.at(high, owner, places + 1)
        dark = np.zeros(count, bool)
        dark[owner] = ink[rows, columns]
        return cls(labels, np.bincount(owner, minlength=count), dark, np.concatenate([low, high], 1))

    @property
    def count(self) -> int:
        return len(self.sizes)

    @cached_property
    def inside(self) -> np.ndarray:
        return self.labels >= 0

    @cached_property
    def centres(self) -> np.ndarray:
        """The mean row and column of each, (N, 2)."""
        rows, columns = np.nonzero(self.inside)
        owner = self.labels[rows, columns]
        sums = [np.bincount(owner, values, self.count) for values in (rows, columns)]
        return np.stack(sums, 1) / self.sizes[:, None].clip(1)

    @cached_property
    def ragged(self) -> np.ndarray:
        """By how many pixels the outline of each is longer than that of a square of its size, (N,)."""
        rim = np.pad(self.labels, 1, constant_values=-2)
        beside = (rim[:-2, 1:-1], rim[2:, 1:-1], rim[1:-1, :-2], rim[1:-1, 2:])
        edges = np.zeros(self.labels.shape, int)
        for other in beside:
            edges += other != self.labels
        return np.asarray((self.mean(edges) * self.sizes - 4 * np.sqrt(self.sizes)).clip(0))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean of values (H, W) over each piece, (N,)."""
        return np.bincount(self.labels[self.inside], values[self.inside], self.count) / self.sizes.clip(1)

    def mask(self, which: np.ndarray) -> np.ndarray:
        """The pixels of pieces, given as booleans (N,)."""
        return np.append(which, False)[self.labels]

    def chosen(self, which: np.ndarray) -> Pieces:
        """Some of the pieces, given as booleans (N,)."""
        numbers = np.append(np.where(which, np.cumsum(which) - 1, -1), -1)
        return Pieces(numbers[self.labels], self.sizes[which], self.dark[which], self.boxes[which])


def around(mask: np.ndarray, far: int, along: int | None = None) -> np.ndarray:
    """The number of True pixels that are at most `far` rows and `along` columns away from each; the same where none.

    >>> around(np.array([[True, False, False, True]]), 1).tolist()
    [[1, 1, 1, 1]]
    """
    across = far if along is None else along
    sums = np.pad(mask.astype(np.int32), ((far + 1, far), (across + 1, across))).cumsum(0, dtype=np.int32)
    sums = sums.cumsum(1, dtype=np.int32)
    high, wide = 2 * far + 1, 2 * across + 1
    return np.asarray(sums[high:, wide:] - sums[:-high, wide:] - sums[high:, :-wide] + sums[:-high, :-wide])
