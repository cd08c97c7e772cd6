"""Models of pictures that may restore one: priors, squares, and neighbours that agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.values import probability_of
from restore.images.colours import AXES, in_colours, in_planes
from restore.inference.decision.facts import CHANCE
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.tiles.blend import HALF_PRECISION_PIXELS, Watch, batch, in_blocks, solved
from restore.inference.tiles.blocks import blocks_of
from restore.zoo.inference import Effort

# Sides of squares, in pixels. Most larger ones have a divisor among them.
SQUARE_SIDES = range(2, 9)

# The upper left corners of parts in their pictures.
Corners: TypeAlias = Sequence[tuple[int, int]]


class Candidate(Protocol):
    """A prior, or another model of pictures, that may restore one."""

    @property
    def names(self) -> tuple[str, str]:
        """Its name, and what computes."""

    @property
    def prior(self) -> Prior | None:
        """The prior that it restores with, if any."""

    def solve(self, pictures: np.ndarray, damage: Damage, corners: Corners, effort: Effort = "full") -> Posterior:
        """The posterior of parts (N, h, w) of pictures."""

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        """The posterior of a whole picture."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A trained prior in one polarity.

    Attributes:
        engine: the prior with its solver.
        invert: invert pictures for the prior, and the answers back.
    """

    engine: PictureEngine
    invert: bool = False

    @property
    def names(self) -> tuple[str, str]:
        return self.engine.header.name, self.engine.backend

    @property
    def prior(self) -> Prior:
        return self

    def solve(self, pictures: np.ndarray, damage: Damage, corners: Corners = (), effort: Effort = "full") -> Posterior:
        posterior = solved(self.engine, 1 - pictures if self.invert else pictures, damage, effort)
        return replace(posterior, means=1 - posterior.means) if self.invert else posterior

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        """As in `Candidate`, of any size, block by block where it is large."""
        header = self.engine.header
        blocks = [] if picture.shape == header.image_shape else blocks_of(picture.shape, header)
        return in_blocks(self.solve, picture, blocks, watch) if len(blocks) > 1 else self.solve(*batch(picture))


class Planes(Prior):
    """A prior of grey pictures that restores colours, (H, W, 3), plane by plane; it is compared by green alone."""

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        planes = in_planes(picture.values())
        parts = list[Posterior]()

        def share(done: float) -> None:
            watch((len(parts) + done) / 3)

        for number in range(3):
            parts.append(super().posterior(Observed(planes[..., number], picture.damage), share))

        def worst(name: str) -> np.ndarray:
            return np.max([getattr(part, name) for part in parts], 0)

        return replace(
            parts[0],
            means=in_colours(np.stack([part.means for part in parts], -1)),
            variances=np.stack([part.variances for part in parts], -1) @ AXES**2,
            iterations=worst("iterations"),
            residual=worst("residual"),
            unsettled=worst("unsettled"),
        )


@dataclass(frozen=True, eq=False)
class Squares:
    """A picture drawn large, as codes and mazes: squares of `side` pixels, each of one colour.

    Their edges lie `top` rows and `left` columns after multiples of the side. Each is white or black, with equal
    probability and independently of the others, unless a prior of them is given.

    Attributes:
        prior: restores the picture in which every square is one pixel; None for squares that are independent.
        edges: True if colours change between squares oftener than by chance. A texture, whose neighbours agree by more
            than chance, looks like squares under flips, but has no edges.
    """

    side: int
    top: int
    left: int
    prior: Prior | None = None
    edges: bool = True

    @property
    def names(self) -> tuple[str, str]:
        return f"squares of {self.side}x{self.side} pixels", "numpy"

    def solve(self, pictures: np.ndarray, damage: Damage, corners: Corners, effort: Effort = "full") -> Posterior:
        evidence = damage.log_odds(pictures).astype(np.float64)
        means = np.empty(pictures.shape, np.float32)
        for index, corner in enumerate(corners):
            sums, down, across = self._gathered(evidence[index], corner)
            means[index] = probability_of(sums)[down][:, across]
        return Posterior.of_pixels(means, means * (1 - means))

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        if self.prior is None:
            return self.solve(*batch(picture), [(0, 0)])
        posterior = self.prior.posterior(self.original(picture), watch)
        _, down, across = self._gathered(np.zeros(picture.shape), (0, 0))
        means, variances = (values[:, down][:, :, across] for values in (posterior.means, posterior.variances))
        return replace(posterior, means=means, variances=variances, layers=())

    def original(self, picture: Observed) -> Observed:
        """The picture with one pixel for each square, and how certain it is."""
        pictures, damage = batch(picture)
        sums, _, _ = self._gathered(damage.log_odds(pictures)[0].astype(np.float64), (0, 0))
        hidden = None if damage.hidden is None else sums == 0
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
    if height * width > HALF_PRECISION_PIXELS:
        return []
    white = picture.values() > 0.5
    visible = picture.visible
    down = _changes(white, visible)
    across = _changes(white.T, visible.T)
    found = list[Squares]()
    for side in (side for side in SQUARE_SIDES if side < min(height, width)):
        (top, one), (left, two) = (_edges(*changes, side) for changes in (down, across))
        found.append(Squares(side, top, left, edges=(one + two) / 2 > CHANCE))
    return found


def _changes(white: np.ndarray, visible: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many pixels are seen to differ from those before them, for each row but the first, and how many are seen."""
    seen = visible[1:] & visible[:-1]
    return ((white[1:] != white[:-1]) & seen).sum(1), seen.sum(1)


def _edges(changes: np.ndarray, seen: np.ndarray, side: int) -> tuple[int, float]:
    """The offset, modulo the side, of the rows before which most changes lie, and by how many standard errors more.

    The first change lies before row 1.
    """
    offsets = np.arange(1, len(changes) + 1) % side
    found, pairs = (np.bincount(offsets, counts, side) for counts in (changes, seen))
    share = pairs / max(1, pairs.sum())
    error = np.sqrt(found.sum() * share * (1 - share))
    excess = (found - found.sum() * share) / error.clip(1e-9)
    return int(excess.argmax()), float(excess.max())
