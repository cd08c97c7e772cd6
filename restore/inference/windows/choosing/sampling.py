"""A sample of a large image, which stands for all of it where something is chosen by evidence: level, polarity, prior.

The sample is some square crops of the image, the same for every prior. Each prior cuts them into windows side by side,
and what it says of one does not depend on the others. So the log-probability is lower than that of the whole crops, the
more so the smaller the windows are: a prior of large windows may gain from that, as it should.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from restore.inference.damage import Damage
from restore.inference.noise.held_out import folds
from restore.inference.pictures import PictureEngine
from restore.inference.tones import Pixels
from restore.inference.windows.tiles import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description

# Side of the crops in pixels, if priors of several windows share them; else as many whole windows as are nearest to it.
# Pixels beyond the edge of a crop are hidden, of which solvers of one start know little.
SIDE = 56

# The crops have these ranks among all, from the plainest to the richest: a page is not known by its margin alone.
RANKS = (0.3, 0.7, 0.85, 1.0)

# The same where several priors are compared, of which some take many starts: they are hundreds of nats apart.
FEW = (0.7, 1.0)

# Side of the cells whose means tell how much there is in a crop, whatever the noise.
CELL = 4

# Crops of which a few are taken; more say nothing new.
MOST = 400

# A stack is solved if all but so many of its windows are: its evidence is a sum, in which few of them count little.
UNSOLVED_IN_STACK = 0.1


@dataclass(frozen=True)
class Stack:
    """Windows of a prior as one picture, whose log p is theirs together: a `PictureSolver` of them."""

    engine: PictureEngine
    count: int

    @property
    def description(self) -> Description:
        height, width = self.engine.description.image_shape
        return replace(self.engine.description, image_shape=(self.count * height, width))

    @property
    def light_ground(self) -> bool:
        return self.engine.light_ground

    @property
    def log_partition(self) -> float:
        return self.count * self.engine.log_partition

    def for_evidence(self) -> Stack:
        """The same: what is chosen by a sum over windows differs by more than they may be off."""
        return self

    def marginals(self, grey: np.ndarray, damage: Damage) -> tuple[Marginals, np.ndarray]:
        """As in `restore.inference.pictures.PictureSolver`; of the layers only the image."""
        images, window = len(grey), self.engine.description.image_shape

        def apart(level: np.ndarray) -> np.ndarray:
            if level.ndim == 3 and level.shape[1:] == (1, 1):
                return np.repeat(level, self.count, axis=0)
            whole = level if level.ndim == 3 else level[None]
            return np.array(np.broadcast_to(whole, grey.shape)).reshape(-1, *window)

        def together(values: np.ndarray) -> np.ndarray:
            return values.reshape(images, self.count, *values.shape[1:])

        hidden = np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden)
        told = damage.mapped(apart).covering(hidden.reshape(-1, *window))
        found, gain = self.engine.marginals(grey.reshape(-1, *window), told)
        lost = (together(found.status) == Status.DIVERGED).any(1)
        solved = (together(found.status) == Status.CONVERGED).mean(1) >= 1 - UNSOLVED_IN_STACK
        marginals = Marginals(
            (found.means[0].reshape(images, -1),),
            (found.variances[0].reshape(images, -1),),
            together(found.log_partition).sum(1),
            together(found.iterations).max(1),
            together(found.residual).max(1),
            np.where(lost, Status.DIVERGED, np.where(solved, Status.CONVERGED, Status.MAX_ITER)),
        )
        if not self.engine.description.conditional:
            # Evidence tells polarities apart better.
            return marginals, np.zeros(images)
        visible = (~hidden).reshape(images, self.count, -1).sum(2)
        return marginals, (together(gain) * visible).sum(1) / visible.sum(1).clip(1)


@dataclass(frozen=True, eq=False)
class Stacked:
    """A sample as a picture for one prior.

    Attributes:
        stack: the prior, for pictures of this size.
        grey, hidden: the picture, and which of its pixels are hidden.
        p: flip probabilities of its pixels, if they differ.
    """

    stack: Stack
    grey: np.ndarray
    hidden: np.ndarray
    p: np.ndarray

    def damaged(self, damage: Damage) -> Damage:
        """What is known of the damage of the picture, where `damage` is that of the image."""
        if self.stack.description.conditional:
            return damage
        told = replace(damage, p=self.p) if isinstance(damage.p, np.ndarray) else damage
        return told.covering([self.hidden])


class Crop(NamedTuple):
    """A part of an image, (h, w): grey values, hidden pixels, and p where it differs from pixel to pixel."""

    grey: np.ndarray
    hidden: np.ndarray | None
    p: np.ndarray | None

    def held_out(self, numbers: Iterable[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each of these folds, which pixels are predicted, and which are hidden meanwhile; (h, w) each."""
        hidden = np.zeros(self.grey.shape, bool) if self.hidden is None else self.hidden
        fold = folds(self.grey.shape)
        for number in numbers:
            yield (fold == number) & ~hidden, (fold == number) | hidden


@dataclass(frozen=True, eq=False)
class Sample:
    """The crops of an image."""

    crops: list[Crop]

    def stacked(self, engine: PictureEngine) -> Stacked:
        """The sample as a picture for a prior."""
        if engine.description.convolutional:
            height, width = self.crops[0].grey.shape
            engine = engine.of_size((height, width))
        about = engine.description
        window = about.image_shape
        grey, hidden, rates = [], [], []
        for values, covered, p in self.crops:
            cover = Cover.of(values.shape, window, 1)
            outside = np.zeros(values.shape, bool) if covered is None else covered
            grey.append(cover.cut(values, "edge" if about.conditional else 0.0))
            hidden.append(cover.cut(outside, True))
            rates.append(cover.cut(np.full(values.shape, 0.5) if p is None else p, 0.5))
        pixels, covered, p = (np.concatenate(part).reshape(-1, window[1]) for part in (grey, hidden, rates))
        return Stacked(Stack(engine, len(pixels) // window[0]), pixels, covered, p)


def side_for(windows: Collection[tuple[int, int]]) -> int:
    """The side of the crops for priors of windows of these sizes.

    >>> side_for({(16, 16)}), side_for({(28, 28)}), side_for({(16, 16), (28, 28)})
    (64, 56, 56)
    """
    sides = {side for window in windows for side in window}
    return SIDE if len(sides) > 1 else (only := sides.pop()) * max(1, round(SIDE / only))


def sample_of(pixels: Pixels, damage: Damage, ranks: tuple[float, ...] = RANKS, side: int = SIDE) -> Sample:
    """The crops of an image (H, W) with known damage: all of it, if it is no larger than one."""
    height, width = pixels.shape
    hidden = None if damage.hidden is None else damage.hidden[0]
    corners = [(top, left) for top in _along(height, side) for left in _along(width, side)]
    if len(corners) > len(ranks):
        corners = [corners[place] for place in np.unique(np.linspace(0, len(corners) - 1, MOST).astype(int))]
        places = [(slice(top, top + side), slice(left, left + side)) for top, left in corners]
        richness = [_richness(pixels[where], None if hidden is None else hidden[where]) for where in places]
        order = np.argsort(richness, kind="stable")
        chosen = np.unique([round(rank * (len(order) - 1)) for rank in ranks])
        corners = [corners[place] for place in order[chosen]]
    crops = []
    for top, left in corners:
        where = (slice(top, top + side), slice(left, left + side))
        p = damage.p[where] if isinstance(damage.p, np.ndarray) else None
        crops.append(Crop(np.asarray(pixels[where]), None if hidden is None else hidden[where], p))
    return Sample(crops)


def _along(length: int, side: int) -> list[int]:
    """Where crops begin: side by side, and one at the end; all at whole windows if a whole number of these fits."""
    last = max(0, length - side)
    return sorted({*range(0, last + 1, side), last})


def _richness(crop: np.ndarray, hidden: np.ndarray | None) -> float:
    """How much the means of cells differ, those of hidden pixels alone left out."""
    seen = np.ones(crop.shape) if hidden is None else (~hidden).astype(float)
    high, wide = (min(CELL, length) for length in crop.shape)
    rows, columns = crop.shape[0] // high, crop.shape[1] // wide

    def sums(values: np.ndarray) -> np.ndarray:
        cells = values[: rows * high, : columns * wide].reshape(rows, high, columns, wide)
        return np.asarray(cells.sum((1, 3)))

    count = sums(seen)
    means = sums(np.where(seen > 0, crop, 0.0))[count > 0] / count[count > 0]
    return float(means.std()) if len(means) else 0.0
