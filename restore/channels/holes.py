"""Holes: square pieces all over an image are missing, and it is known which, as in a worn page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.occlusion import Painting
from restore.channels.task import Form
from restore.channels.values import places, starts
from restore.errors import UsageError

# Holes lie one to a cell of twice their side, so that none is over another: together they hide a quarter at most.
MOST = 0.25

# Equal parts of [0, 1) among which a number is drawn.
PARTS = 2**24


@dataclass(frozen=True)
class Holes(Painting):
    """Paint over squares at random places, none over another, of an image of any size.

    Attributes:
        size: side of the squares in pixels; those at the lower and right edges may be cut.
        share: the share of all pixels that they hide on average, in (0, 1/4].
        fill, mask, grey: see `Painting`.

    >>> _, hidden = Holes(4, share=0.1).damage_picture(np.zeros((400, 400)), np.random.default_rng(0))
    >>> round(float(hidden.mean()), 1)
    0.1
    """

    size: int
    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1:
            raise UsageError("a hole is at least one pixel wide")
        if not 0 < self.share <= MOST:
            raise UsageError(f"holes hide a share above 0 and of at most {MOST:g}")

    def __str__(self) -> str:
        return f"holes:{self.size}:{self.share:g}"

    def drawn(self, count: int, image_shape: tuple[int, ...], generator: Any) -> Any:
        cell = 2 * self.size
        rows, columns = (-(-length // cell) for length in image_shape)
        down, across = (places(length, generator) for length in image_shape)
        down = down[:, None]

        def each(below: int) -> Any:
            """A number from 0 to `below` - 1 for every cell, at each of its pixels."""
            of_cells = starts(below, count * rows * columns, generator).reshape(count, rows, columns)
            return of_cells[:, down // cell, across // cell]

        there = each(PARTS) < self.share / MOST * PARTS
        from_top, from_left = down % cell - each(self.size + 1), across % cell - each(self.size + 1)
        inside = (from_top >= 0) & (from_top < self.size) & (from_left >= 0) & (from_left < self.size)
        return there & inside

    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        """That of a whole cell on average: which of its pixels are likelier to be hidden tells little."""
        return np.full(image_shape, self.share)


FORM = Form(
    "holes:SIZE:SHARE (of at most 1/4 of the image)",
    r"holes:(\d{1,9}):([^:]*)",
    lambda request, size, share: Holes(int(size), share, mask=request.mask, grey=request.grey),
)
