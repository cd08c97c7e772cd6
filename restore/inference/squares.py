"""Pictures drawn large: every pixel of the original is a square of k x k pixels, as in codes and mazes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.values import probability_of
from restore.inference.score import Candidate
from restore.inference.tiles.blend import MANY, Posterior, Watch

# Sides of squares, in pixels. Most larger ones have a divisor among them.
SIDES = range(2, 9)


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares of `side` pixels whose edges lie `top` rows and `left` columns after multiples of the side.

    Each is white or black, with equal probability and independently of the others, unless a prior of them is given.

    Attributes:
        modules: restores the picture in which every square is one pixel; None for squares that are independent.
    """

    side: int
    top: int
    left: int
    modules: Candidate | None = None
    invert: bool = False

    @property
    def names(self) -> tuple[str, str]:
        return f"squares of {self.side}x{self.side} pixels", "numpy"

    def quickly(self) -> Squares:
        return self

    def solve(self, seen: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]]) -> Posterior:
        """The posterior of parts (N, h, w) of a picture, each with its upper left corner in the picture."""
        evidence = damage.log_odds(seen).astype(np.float64)
        means = np.empty(seen.shape, np.float32)
        for index, corner in enumerate(corners):
            sums, down, across = self._gathered(evidence[index], corner)
            means[index] = probability_of(sums)[down][:, across]
        one, none = np.ones(len(seen), int), np.zeros(len(seen))
        return Posterior(means, means * (1 - means), one, none, one, one - 1, none > 0, none)

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        """The posterior of the whole picture."""
        if self.modules is None:
            part = picture.part(slice(None), slice(None))
            return self.solve(part.values()[None], part.damage.mapped(lambda values: values[None]), [(0, 0)])
        found = self.modules.posterior(self.original(picture), watch)
        _, down, across = self._gathered(np.zeros(picture.shape), (0, 0))
        large = (values[:, down][:, :, across] for values in (found.means, found.variances))
        return replace(found, **dict(zip(("means", "variances"), large, strict=True)), layers=())

    def original(self, picture: Observed) -> Observed:
        """The picture with one pixel for each square, and how certain it is."""
        part = picture.part(slice(None), slice(None))
        evidence = part.damage.mapped(lambda values: values[None]).log_odds(part.values()[None])[0]
        sums, _, _ = self._gathered(evidence.astype(np.float64), (0, 0))
        hidden = None if picture.damage.hidden is None else sums == 0
        return Observed((sums > 0).astype(np.float64), Damage(probability_of(-np.abs(sums)), hidden=hidden))

    def _gathered(self, evidence: np.ndarray, corner: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The evidence of each square of a part, and the rows and the columns of squares that pixels lie in."""
        places = zip(evidence.shape, corner, (self.top, self.left), strict=True)
        down, across = ((np.arange(size) + start - edge) // self.side for size, start, edge in places)
        down, across = down - down[0], across - across[0]
        rows = np.add.reduceat(evidence, np.flatnonzero(np.diff(down, prepend=-1)), 0)
        return np.add.reduceat(rows, np.flatnonzero(np.diff(across, prepend=-1)), 1), down, across


def squares_in(picture: Observed) -> list[Squares]:
    """For each side of squares, those between which the colour changes most often.

    Args:
        picture: black and white, of 0 and 1.

    >>> code = np.kron(np.random.default_rng(0).random((20, 20)) < 0.5, np.ones((4, 4)))[1:, 2:]
    >>> [(each.top, each.left) for each in squares_in(Observed(code, Damage("auto"))) if each.side == 4]
    [(3, 2)]
    """
    height, width = picture.shape
    if height * width > MANY:
        return []
    white, visible = picture.values() > 0.5, picture.visible
    down = ((white[1:] != white[:-1]) & visible[1:] & visible[:-1]).sum(1)
    across = ((white[:, 1:] != white[:, :-1]) & visible[:, 1:] & visible[:, :-1]).sum(0)
    sides = [side for side in SIDES if side < min(height, width)]
    return [Squares(side, _most_changed(down, side), _most_changed(across, side)) for side in sides]


def _most_changed(changes: np.ndarray, side: int) -> int:
    """Where between rows (of which the first change is before row 1) edges of squares lie, modulo their side."""
    place = np.arange(1, len(changes) + 1) % side
    return int((np.bincount(place, changes, side) / np.bincount(place, minlength=side).clip(1)).argmax())
