"""A picture in which marks are looked for, kind by kind: what one kind has found is gone for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from restore.components import components
from restore.inference.marks.dots import small_pieces
from restore.inference.marks.ground import Ground
from restore.inference.marks.leaders import leading
from restore.inference.marks.pieces import Pieces, around
from restore.inference.marks.specks import LARGEST_SPECK, largest_of
from restore.inference.marks.witness import Witness


@dataclass(frozen=True, eq=False)
class Mark:
    """All marks of one kind.

    Attributes:
        kind: its name.
        mask: their pixels, boolean (H, W).
        count: how many there are.
        sure: True if they cannot be part of the picture, so that nobody has to ask for their removal; this is
            not looked into for specks that are asked for.
        on_ground: True if there is only ground beneath them, so that nothing has to be predicted.
        largest: the pixels of the largest speck, if that has to be said before they go.
    """

    kind: str
    mask: np.ndarray
    count: int
    sure: bool = False
    on_ground: bool = False
    largest: int | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """A black and white picture.

    Attributes:
        ink: what is drawn, boolean (H, W), without the marks that were found.
        light: True if the ground is white.
        marked: where these were.
        call: gives a prior for a picture, True for white, some pixels of which are left out.
        most: pixels of the largest speck; None to find it.
        told: True if the caller says that there are marks.
    """

    ink: np.ndarray
    light: bool
    marked: np.ndarray
    call: Callable[[np.ndarray, np.ndarray], Witness]
    most: int | None = None
    told: bool = True

    def without(self, mask: np.ndarray) -> Scene:
        return replace(self, ink=self.ink & ~mask, marked=self.marked | mask)

    @property
    def white(self) -> np.ndarray:
        return self.ink != self.light

    @cached_property
    def components(self) -> np.ndarray:
        return components(self.ink)

    @cached_property
    def ground(self) -> Ground:
        small = Pieces.of(self.ink, LARGEST_SPECK, self.components)
        return Ground.of(self.ink, self.components, small.chosen(small.mean(self.leaders) == 0))

    @cached_property
    def pieces(self) -> Pieces:
        """The pieces that may be specks: none is a scrap beside marks of another kind, nor of a leader."""
        most = largest_of(self.ground) if self.most is None else self.most
        pieces = Pieces.of(self.ink, most, self.components)
        kept = (around(self.marked, 2) > 0) | self.leaders
        return pieces.chosen(pieces.mean(kept) == 0) if kept.any() else pieces

    @cached_property
    def leaders(self) -> np.ndarray:
        """The dots of leaders, boolean (H, W)."""
        dots = small_pieces(self.ink, self.components)
        return dots.mask(leading(dots))
