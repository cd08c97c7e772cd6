"""Pixels that may be computed where they are asked for, and their cut to black and white."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

# More pixels than this say nothing new of the levels of a picture.
ENOUGH = 2**20


class Pixels(Protocol):
    """Values (H, W) or (H, W, 3): an array, or what gives a part of one where it is asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, where: tuple[slice, slice], /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Cut:
    """A grey picture in black and white: 1 where it is lighter than a threshold in [0, 1], else 0."""

    grey: Pixels
    threshold: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.grey.shape)

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        return (self.grey[where] > self.threshold).astype(np.float32)


def thinned(grey: Pixels) -> np.ndarray:
    """The pixels (H, W), or an even sample of them if they are many."""
    height, width = grey.shape[:2]
    step = 1 + int((height * width / ENOUGH) ** 0.5)
    return np.asarray(grey[::step, ::step])
