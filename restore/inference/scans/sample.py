"""The grey levels of a picture that are seen: how many tones, where to cut it, and whether its ink is light."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from restore.channels.damage import Observed, Pixels
from restore.images.picture import Picture
from restore.images.tones import ENOUGH, Tones, counted
from restore.inference.scans.sheet import Local

# The skewness of grey levels around their local mean from which ink is light: of 160 pages of dark ink it is -.17 at
# most, of their middles .04 (`benchmarks/choices/page_limits.py`).
LIGHT_INK = 0.5


@dataclass(frozen=True, eq=False)
class Cut:
    """A grey picture in black and white: 1 where it is lighter than a threshold in [0, 1], else 0."""

    grey: Pixels
    threshold: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.grey.shape)

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        if isinstance(self.grey, Picture):
            return self.grey.lighter(self.threshold, where).astype(np.float32)
        return (self.grey[where] > self.threshold).astype(np.float32)


def step_of(picture: Observed) -> int:
    """Every how many rows and columns of a picture are enough to count its levels, however large it is."""
    return 1 + int((picture.shape[0] * picture.shape[1] / ENOUGH) ** 0.5)


@dataclass(frozen=True, eq=False)
class Sample:
    """The visible grey levels of a picture, or of some of its pixels if it is large.

    Attributes:
        pixels: (h, w), in [0, 1] except for noise.
        shown: True where they are not hidden, (h, w); everywhere if none is visible.
        whole: True if these are all pixels.
    """

    pixels: np.ndarray
    shown: np.ndarray
    whole: bool

    @classmethod
    def of(cls, picture: Observed) -> Sample:
        step, hidden = step_of(picture), picture.damage.hidden
        pixels = np.asarray(picture.pixels[::step, ::step])
        every = hidden is None or hidden[::step, ::step].all()
        shown = np.ones(pixels.shape, bool) if every or hidden is None else ~hidden[::step, ::step]
        return cls(pixels, shown, pixels.shape == picture.shape)

    @cached_property
    def visible(self) -> np.ndarray:
        """The levels that are not hidden, (N,)."""
        return self.pixels[self.shown]

    @cached_property
    def tones(self) -> Tones:
        return Tones.of(counted(np.rint(255 * self.visible.clip(0, 1)).astype(np.uint8)))

    @property
    def light_ink(self) -> bool:
        """True if what stands out of its surroundings is light: of the paper around it ink is the smaller part."""
        mean = Local(self.pixels.shape).mean(self.pixels.astype(np.float32), self.shown.astype(np.float32))
        around = (self.pixels - mean)[self.shown]
        return bool(np.mean(around**3) > LIGHT_INK * float(np.mean(around**2)) ** 1.5)

    def cut(self, picture: Observed, threshold: float) -> Observed:
        """The picture in black and white."""
        whole = (self.pixels > threshold).astype(np.float32) if self.whole else Cut(picture.pixels, threshold)
        return replace(picture, pixels=whole)
