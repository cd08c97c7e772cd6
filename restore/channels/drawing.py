"""Painting over pixels: one patch at a random place, or holes all over an image, as in a worn page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.values import integers, module_of, positions, uniform
from restore.errors import UsageError, require
from restore.sizes import size_text

# Holes lie one to a cell of twice their side, so that none is over another: together they hide a quarter at most.
HIDDEN_SHARE = 0.25

# Equal parts of [0, 1) among which a number is drawn.
PARTS = 2**24


class Painting(ABC):
    """Paint over some pixels of each image, chosen at random and independently of their values.

    Attributes:
        fill: the value painted, in [0, 1].
    """

    fill: float

    def painted(self, x: Any, generator: Any) -> tuple[Any, Any]:
        """Images (N, H, W) after painting, arrays or tensors, and their hidden pixels, boolean (N, H, W)."""
        hidden = self.drawn(tuple(x.shape), generator)
        library = module_of(x)
        if library is not np:
            uniform(x, generator)  # Published priors learnt with numbers drawn for visible pixels too.
        return library.where(hidden, library.full_like(x, self.fill), x), hidden

    @abstractmethod
    def drawn(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Draw the hidden pixels of images of shape (N, H, W); raises UsageError if they do not fit."""

    @abstractmethod
    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        """The probability that each pixel is hidden, (H, W)."""


@dataclass(frozen=True)
class Patch(Painting):
    """Paint over a square at a random place within the image.

    Attributes:
        size: side of the square in pixels.
        fill: see `Painting`.

    >>> painted, hidden = Patch(2, fill=1.0).painted(np.zeros((1, 5, 5)), np.random.default_rng(0))
    >>> int(hidden.sum()), bool((painted == hidden).all())
    (4, True)
    """

    size: int
    fill: float = 0.0

    def __post_init__(self) -> None:
        require(self.size >= 1, "a patch is at least one pixel wide")
        require(0 <= self.fill <= 1, "the fill value of a patch must lie in [0, 1]")

    def __str__(self) -> str:
        return f"patch:{self.size}:{self.fill:g}"

    def drawn(self, shape: tuple[int, ...], generator: Any) -> Any:
        count, height, width = shape
        if self.size > min(height, width):
            raise UsageError(f"the patch does not fit into images of {size_text((height, width))} pixels", self)
        rows, columns = (self._covered(length, count, generator) for length in (height, width))
        return rows[:, :, None] & columns[:, None, :]

    def _covered(self, length: int, count: int, generator: Any) -> Any:
        """Random intervals of the patch's size within `length`, boolean (count, length)."""
        first = integers(length - self.size + 1, count, generator)
        position = positions(length, generator)
        return (position >= first) & (position < first + self.size)

    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        return np.outer(*(self._coverage(length) for length in image_shape))

    def _coverage(self, length: int) -> np.ndarray:
        """The probability that such an interval covers each position; shape (length,)."""
        position = np.arange(length, dtype=np.float64)
        first = (position - self.size + 1).clip(0)
        last = position.clip(None, length - self.size)
        return (last - first + 1) / (length - self.size + 1)


@dataclass(frozen=True)
class Holes(Painting):
    """Paint over squares at random places, none over another, of an image of any size.

    Attributes:
        size: side of the squares in pixels; those at the lower and right edges may be cut.
        share: the share of all pixels that they hide on average, in (0, 1/4].
        fill: see `Painting`.

    >>> hidden = Holes(4, share=0.1).drawn((1, 400, 400), np.random.default_rng(0))
    >>> round(float(hidden.mean()), 1)
    0.1
    """

    size: int
    share: float
    fill: float = 0.0

    def __post_init__(self) -> None:
        require(self.size >= 1, "a hole is at least one pixel wide")
        require(0 < self.share <= HIDDEN_SHARE, f"holes hide a share above 0 and of at most {HIDDEN_SHARE:g}")

    def __str__(self) -> str:
        return f"holes:{self.size}:{self.share:g}"

    def drawn(self, shape: tuple[int, ...], generator: Any) -> Any:
        count = shape[0]
        cell = 2 * self.size
        rows, columns = (-(-length // cell) for length in shape[1:])
        down, across = (positions(length, generator) for length in shape[1:])
        down = down[:, None]

        def of_cells(below: int) -> Any:
            """A random number from 0 to `below` - 1 for every cell, at each of its pixels."""
            numbers = integers(below, count * rows * columns, generator).reshape(count, rows, columns)
            return numbers[:, down // cell, across // cell]

        chosen = of_cells(PARTS) < self.share / HIDDEN_SHARE * PARTS
        from_top, from_left = down % cell - of_cells(self.size + 1), across % cell - of_cells(self.size + 1)
        inside = (from_top >= 0) & (from_top < self.size) & (from_left >= 0) & (from_left < self.size)
        return chosen & inside

    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        """The average over a whole cell: which of its pixels are likelier to be hidden hardly matters."""
        return np.full(image_shape, self.share)
