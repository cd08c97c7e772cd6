"""The crops of pictures on which candidates are compared, and which of their pixels are hidden in each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.quiet import MEASURED_PARTS
from restore.inference.scans.sheet import CELL

# The number of turns in which pixels are hidden; and the greatest side of a hidden block, in pixels.
FOLDS = 4
WIDEST_HOLE = 12

# The side of a crop in pixels, the greatest number of crops, and how many of them show which candidates may win.
CROP_SIDE = 56
CROPS = 8
FIRST = 2

# Crops are drawn in proportion to their content beyond this multiple of the least: blank paper says nothing, and noise
# varies by a third (`benchmarks/choices/families.py`).
BLANK = 1.3


@dataclass(frozen=True, eq=False)
class Crops:
    """Crops of N pictures.

    Attributes:
        pixels: grey values of the crops, (C, h, w).
        damage: of the crops.
        corners: where each begins in its picture.
        owner: the picture of each, (C,).
        count: how many pictures there are.
        grey: True for grey pictures.
        holes: the part of each picture that shows most of its holes, boolean (h, w); empty for a picture without.
        shape: the height and the width of the pictures.
    """

    pixels: np.ndarray
    damage: Damage
    corners: list[tuple[int, int]]
    owner: np.ndarray
    count: int
    grey: bool
    holes: tuple[np.ndarray, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, pictures: Sequence[Observed], grey: bool) -> Crops:
        places = [_places(picture) for picture in pictures]
        parts = [picture.part(*slices) for picture, crops in zip(pictures, places, strict=True) for slices in crops]
        pixels = np.stack([part.values() for part in parts])
        return cls(
            pixels,
            Damage.stacked([part.damage for part in parts], pixels.shape[1:]),
            [(rows.start, columns.start) for crops in places for rows, columns in crops],
            np.repeat(np.arange(len(places)), [len(crops) for crops in places]),
            len(pictures),
            grey,
            tuple(_most_of_holes(picture.damage.hidden, pixels.shape[1:]) for picture in pictures),
            pictures[0].shape[:2],
        )

    def of_some(self, pictures: Sequence[Observed]) -> Crops:
        """Crops of these pictures, which are some of its own: the same where they are all."""
        return self if len(pictures) == self.count else Crops.of(pictures, self.grey)

    @property
    def rank(self) -> np.ndarray:
        """The number of each crop among those of its picture, (C,)."""
        return np.arange(len(self.owner)) - np.searchsorted(self.owner, self.owner)

    @property
    def guess(self) -> Damage:
        """The damage to predict under: what is known, a guess for what is not, and the least for none."""
        scale = self.damage.scale(grey=self.grey)
        if self.damage.unknown:
            return self.damage.at(scale.guess)
        return self.damage if self.damage.touched or self.grey else replace(self.damage, p=float(scale.levels[0]))

    @property
    def in_pieces(self) -> np.ndarray:
        """True for pictures of which whole holes are hidden in turns, not single pixels, (N,)."""
        return np.array([hole.any() for hole in self.holes])

    @property
    def visible(self) -> np.ndarray:
        hidden = self.damage.hidden
        return np.ones(self.pixels.shape, bool) if hidden is None else ~hidden

    @cached_property
    def folds(self) -> np.ndarray:
        """The pixels hidden in each turn, boolean (FOLDS, C, h, w), each once: a quarter, or holes like those to fill.

        Grey pictures without holes hide a lattice at a time, which is the same in all tiles: a mixture of Gaussians
        needs a factorisation for each mask.
        """
        height, width = shape = self.pixels.shape[1:]
        if self.grey and not self.in_pieces.any():
            turns = np.arange(height)[:, None] % 2 * 2 + np.arange(width) % 2
            return np.broadcast_to(_turns(turns)[:, None], (FOLDS, *self.pixels.shape))
        of_pictures = [_folds_like(hole, (shape[0], shape[1])) for hole in self.holes]
        return np.stack([of_pictures[index] for index in self.owner.tolist()], 1)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the pixels of each picture, (..., N), of values (..., C, h, w)."""
        of_crops = values.sum((-2, -1))
        return np.stack([of_crops[..., self.owner == index].sum(-1) for index in range(self.count)], -1)

    @cached_property
    def independent(self) -> np.ndarray:
        """log p of every pixel, (C, h, w), as one of independent pixels, which share the distribution of those seen."""
        visible = self.visible
        count = self.sums(visible).clip(1)
        mean = (self.sums(np.where(visible, self.pixels, 0)) + 0.5) / (count + 1)
        at_crops = mean[self.owner][:, None, None]
        square = self.sums(np.where(visible, (self.pixels - at_crops) ** 2, 0)) / count
        # They describe what was observed, so that noise adds nothing.
        spread = square[self.owner][:, None, None]
        return np.asarray(Damage(0.0, 0.0).log_predictive(self.pixels, at_crops, spread, grey=self.grey))


def _most_of_holes(hidden: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """The part (h, w) of a mask (H, W) of which most is hidden, no more than in a turn; empty if there is none."""
    nothing = np.zeros((0, 0), bool)
    if hidden is None or not hidden.any():
        return nothing
    best = nothing
    most = 0
    rows, columns = (_steps(size, part) for size, part in zip(hidden.shape, shape, strict=True))
    for top in rows:
        for left in columns:
            part = hidden[top : top + shape[0], left : left + shape[1]]
            count = int(part.sum())
            if most < count <= part.size / FOLDS:  # with more, little would be left to see
                best, most = part, count
    return best if most else np.ones(shape, bool)


def _steps(length: int, part: int) -> list[int]:
    """The starts of parts that overlap by half, and of one at the end."""
    last = max(0, length - part)
    return sorted({*range(0, last + 1, max(1, part // 2)), last})


def _folds_like(hole: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Pixels to hide in each turn, boolean (FOLDS, h, w): single ones, copies of holes, or blocks if all is hidden."""
    draw = np.random.default_rng(0)
    if hole.any() and not hole.all():
        copies = int(np.ceil(1 / (2 * FOLDS * hole.mean())))
        moves = draw.integers(0, shape, (FOLDS, copies, 2))
        copies_of = [np.any([np.roll(hole, tuple(move), (0, 1)) for move in turn], 0) for turn in moves.tolist()]
        first = np.argmax(copies_of, 0)  # each pixel is hidden once
        return np.array(copies_of) & _turns(first)
    side = WIDEST_HOLE if hole.any() else 1
    turns = draw.integers(0, FOLDS, (-(-shape[0] // side), -(-shape[1] // side)))
    return _turns(turns.repeat(side, 0).repeat(side, 1)[: shape[0], : shape[1]])


def _turns(numbers: np.ndarray) -> np.ndarray:
    """The pixels of each turn, boolean (FOLDS, h, w), from the number of each pixel's turn."""
    return numbers == np.arange(FOLDS)[:, None, None]


def _places(picture: Observed) -> list[tuple[slice, slice]]:
    """The slices of the crops of a picture; the whole picture if it is no larger than a few crops."""
    height, width = picture.shape[:2]
    if height * width <= CROP_SIDE * CROP_SIDE * FIRST:
        return [(slice(0, height), slice(0, width))]
    corners = [(top, left) for top in _along(height) for left in _along(width)]
    if len(corners) > CROPS:
        corners = [corners[index] for index in np.unique(np.linspace(0, len(corners) - 1, MEASURED_PARTS).astype(int))]
        richness = np.array([_richness(picture.part(*_crop(corner))) for corner in corners])
        weight = (richness - BLANK * richness.min()).clip(0)
        total = np.cumsum(weight if weight.any() else np.ones(len(weight)))
        places = np.unique(np.searchsorted(total, total[-1] * (np.arange(CROPS) + 0.5) / CROPS))
        spread = [*places[::3], *places[1::3], *places[2::3]]
        corners = [corners[index] for index in spread]
    return [_crop(corner) for corner in corners]


def _crop(corner: tuple[int, int]) -> tuple[slice, slice]:
    return slice(corner[0], corner[0] + CROP_SIDE), slice(corner[1], corner[1] + CROP_SIDE)


def _along(length: int) -> list[int]:
    """The starts of crops that lie side by side, and of one at the end."""
    last = max(0, length - CROP_SIDE)
    return sorted({*range(0, last + 1, CROP_SIDE), last})


def _richness(part: Observed) -> float:
    """The standard deviation of the means of cells, without those that are all hidden."""
    visible = part.visible.astype(float)
    values = np.asarray(part.pixels)
    high, wide = (min(CELL, length) for length in values.shape)
    rows, columns = values.shape[0] // high, values.shape[1] // wide

    def sums(of: np.ndarray) -> np.ndarray:
        whole = of[: rows * high, : columns * wide]
        return np.asarray(whole.reshape(rows, high, columns, wide).sum((1, 3)))

    count = sums(visible)
    means = sums(np.where(visible > 0, values, 0.0))[count > 0] / count[count > 0]
    return float(means.std()) if len(means) else 0.0
