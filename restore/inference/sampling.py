"""A sample of a large image, which stands for all of it where something is chosen by evidence: level, polarity, prior.

The sample is some square crops of the image, the same for every prior. Of each prior they are cut into windows side by
side, and the windows are put on top of each other as one picture, whose log-probability is the sum of theirs. It is
lower than that of the whole crops, for what windows know of each other is left out, and the more so the smaller they
are: a prior of large windows may gain from that, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from restore.inference.damage import Damage
from restore.inference.pictures import PictureEngine
from restore.inference.tiles import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description

# Side of the crops in pixels: 2 windows of 28 pixels, or 4 of 16.
SIDE = 56

# The crops have these ranks among all, from the plainest to the richest: a page is not known by its margin alone.
RANKS = (0.3, 0.7, 0.85, 1.0)

# The same where several priors are compared, of which some take many starts: they are hundreds of nats apart.
FEW = (0.7, 1.0)

# Side of the cells whose means tell how much there is in a crop, whatever the noise.
CELL = 4

# A sample is solved if all but so many of its windows are: its evidence is a sum, in which few of them count little.
UNSOLVED = 0.1


class Pixels(Protocol):
    """Grey values (H, W) that may be computed where they are asked for: an array, or what is like one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, where: tuple[slice, slice], /) -> np.ndarray: ...


@dataclass(frozen=True)
class Stack:
    """An engine for pictures that are `count` windows of its prior on top of each other."""

    engine: PictureEngine
    count: int

    @property
    def name(self) -> str:
        return self.engine.name

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

    @property
    def max_memory(self) -> int | None:
        return self.engine.max_memory

    def with_solver(self, solver: str) -> Stack:
        return replace(self, engine=self.engine.with_solver(solver))

    def for_evidence(self) -> Stack:
        """The same: what is chosen by a sum over windows differs by more than they may be off."""
        return self

    def pixel_means(self) -> np.ndarray:
        return np.tile(self.engine.pixel_means(), (self.count, 1))

    def features(self, grey: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def marginals(self, grey: np.ndarray, damage: Damage) -> tuple[Marginals, np.ndarray]:
        """As in `restore.inference.pictures.PictureEngine`; of the layers there is but the first."""
        window = self.engine.description.image_shape
        images = len(grey)

        def apart(level: object) -> object:
            if not isinstance(level, np.ndarray):
                return level
            whole = level if level.ndim == 3 else level[None]
            if whole.shape[1:] == (1, 1):
                return np.repeat(whole, self.count, axis=0)
            return np.array(np.broadcast_to(whole, grey.shape)).reshape(-1, *window)

        hidden = np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden)
        told = Damage(apart(damage.p), apart(damage.sigma), hidden.reshape(-1, *window))  # type: ignore[arg-type]
        found, gain = self.engine.marginals(grey.reshape(-1, *window), told)
        visible = (~hidden).reshape(images, self.count, -1).sum(2)

        def each(values: np.ndarray) -> np.ndarray:
            return values.reshape(images, self.count, *values.shape[1:])

        lost = (each(found.status) == Status.DIVERGED).any(1)
        solved = (each(found.status) == Status.CONVERGED).mean(1) >= 1 - UNSOLVED
        status = np.where(lost, Status.DIVERGED, np.where(solved, Status.CONVERGED, Status.MAX_ITER))
        together = Marginals(
            (found.means[0].reshape(images, -1),),
            (found.variances[0].reshape(images, -1),),
            each(found.log_partition).sum(1),
            each(found.iterations).max(1),
            each(found.residual).max(1),
            status,
        )
        # Evidence tells polarities apart better, where there is any.
        known = not self.engine.description.conditional
        return together, np.zeros(images) if known else (each(gain) * visible).sum(1) / visible.sum(1).clip(1)


@dataclass(frozen=True, eq=False)
class Sample:
    """The crops of an image: grey values, hidden pixels, and p where it differs from pixel to pixel."""

    crops: list[tuple[np.ndarray, np.ndarray | None, np.ndarray | None]]

    def stacked(self, engine: PictureEngine, damage: Damage) -> tuple[Stack, np.ndarray, Damage]:
        """The sample as a picture for a prior, with what restores it and what is known of its damage."""
        window = engine.description.image_shape
        grey, hidden, rates = [], [], []
        for values, covered, p in self.crops:
            cover = Cover.of(values.shape, window, 1)
            outside = np.zeros(values.shape, bool) if covered is None else covered
            conditional = engine.description.conditional
            grey.append(cover.cut(values, "edge" if conditional else 0.0))
            hidden.append(cover.cut(outside, True))
            rates.append(cover.cut(np.full(values.shape, 0.5) if p is None else p, 0.5))
        pixels, covered, p = (np.concatenate(part).reshape(-1, window[1]) for part in (grey, hidden, rates))
        stack = Stack(engine, len(pixels) // window[0])
        if engine.description.conditional:
            return stack, pixels, damage
        told = replace(damage, p=p) if isinstance(damage.p, np.ndarray) else damage
        return stack, pixels, told.covering([covered])


def sample_of(pixels: Pixels, damage: Damage, ranks: tuple[float, ...] = RANKS) -> Sample:
    """The crops of an image (H, W) with known damage: all of it, if it is no larger than one."""
    height, width = pixels.shape
    hidden = None if damage.hidden is None else damage.hidden[0]
    corners = [
        (top, left)
        for top in range(0, max(1, height - SIDE + 1), SIDE)
        for left in range(0, max(1, width - SIDE + 1), SIDE)
    ]
    if len(corners) > len(ranks):
        # Many more than are taken tell nothing new.
        corners = [corners[place] for place in np.unique(np.linspace(0, len(corners) - 1, 400).astype(int))]
        richness = [_richness(pixels[top : top + SIDE, left : left + SIDE]) for top, left in corners]
        order = np.argsort(richness, kind="stable")
        chosen = np.unique([round(rank * (len(order) - 1)) for rank in ranks])
        corners = [corners[place] for place in order[chosen]]
    crops = []
    for top, left in corners:
        where = (slice(top, top + SIDE), slice(left, left + SIDE))
        p = damage.p[where] if isinstance(damage.p, np.ndarray) else None
        crops.append((np.asarray(pixels[where]), None if hidden is None else hidden[where], p))
    return Sample(crops)


def _richness(crop: np.ndarray) -> float:
    """How much the means of cells differ."""
    rows, columns = (length // CELL * CELL for length in crop.shape)
    cells = crop[:rows, :columns].reshape(rows // CELL, CELL, columns // CELL, CELL).mean((1, 3))
    return float(cells.std())
