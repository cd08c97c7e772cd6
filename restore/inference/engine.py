"""An engine, which is a prior with its solver, and its answer: the posterior of damaged pictures, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from restore.channels.damage import Damage
from restore.status import Status
from restore.zoo.description import Description
from restore.zoo.inference import Effort

# A picture has converged if all but this share of its tiles have.
UNSETTLED = 0.01


class PictureEngine(Protocol):
    """A prior with its solver. What it cannot do raises UsageError, such as pictures of another size."""

    @property
    def backend(self) -> str:
        """What computes: "torch" or "onnx"."""

    @property
    def header(self) -> Description: ...

    @property
    def light_ground(self) -> bool:
        """True if the prior expects dark strokes on light."""

    @property
    def part(self) -> int:
        """The length of the sides of the parts in which a convolutional prior takes a large picture."""

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        """The posterior of damaged pictures.

        Args:
            pictures: of the prior's size, or of any for a convolutional one, (N, H, W), N >= 1: 0 and 1, or grey levels
                for a prior of grey ones.
            damage: of this batch, without unknown levels.
            effort: how well to solve.
        """


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of N damaged pictures of one shape.

    Attributes:
        means: probability of white, or mean grey level, of every pixel, (N, H, W). NaN, like the variances, where the
            solver diverged.
        variances: of every pixel, (N, H, W).
        iterations: the most of any tile, (N,).
        residual: how far means moved in the last iteration, the most of any tile, (N,): the largest change; of
            convolutional priors the average one of pixels.
        tiles, unsettled: how many tiles there are, and how many did not converge, (N,).
        blind: True where a tile has nothing visible, (N,).
        inversion: by how many nats per visible pixel a picture is likelier after inversion, (N,); 0 if unknown.
        layers: means of hidden layers, (N, units) each; empty after several tiles, or a prior of any size.
    """

    means: np.ndarray
    variances: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    tiles: np.ndarray
    unsettled: np.ndarray
    blind: np.ndarray
    inversion: np.ndarray
    layers: tuple[np.ndarray, ...] = ()

    @classmethod
    def of_pixels(cls, means: np.ndarray, variances: np.ndarray, steps: int = 1) -> Posterior:
        """The posterior of pictures, (N, H, W), after a number of steps without a solver."""
        count = len(means)
        one = np.ones(count, int)
        blind = np.zeros(count, bool)
        return cls(means, variances, steps * one, np.zeros(count), one, one - 1, blind, np.zeros(count))

    @classmethod
    def solved(
        cls,
        pictures: np.ndarray,
        damage: Damage,
        layers: Sequence[Sequence[np.ndarray]],
        outcome: Sequence[np.ndarray],
        inversion: np.ndarray,
    ) -> Posterior:
        """The answer of a solver about pictures (N, H, W).

        A picture with any value that is not finite is one for which the solver diverged: all its values are NaN.

        Args:
            pictures, damage: what was to be solved.
            layers: means and variances of the layers, (N, units) each; the first layer is the pixels.
            outcome: a `Status`, the iterations, and the residual of each picture, (N,).
            inversion: as in `Posterior`.
        """
        (means, variances), (status, iterations, residual) = layers, outcome
        finite = np.all([np.isfinite(layer).all(1) for layer in (*means, *variances)], 0)
        lost = (status == Status.DIVERGED) | ~finite
        if lost.any():
            means, variances = (
                [np.where(lost[:, None], layer.dtype.type(np.nan), layer) for layer in values] for values in layers
            )
        hidden = np.zeros(pictures.shape, bool) if damage.hidden is None else damage.hidden
        return cls(
            means[0].reshape(pictures.shape),
            variances[0].reshape(pictures.shape),
            iterations,
            np.where(np.isfinite(residual), residual, 0),
            np.ones(len(pictures), int),
            (lost | (status != Status.CONVERGED)).astype(int),
            np.asarray(np.broadcast_to(hidden, pictures.shape).all((1, 2))),
            inversion,
            tuple(means[1:]),
        )

    @classmethod
    def concatenated(cls, parts: Sequence[Posterior]) -> Posterior:
        """The pictures of several posteriors, one after the other, without hidden layers."""
        return cls(*(np.concatenate(values) for values in zip(*map(_of_pictures, parts), strict=True)))  # type: ignore[arg-type]

    def rows(self, index: np.ndarray) -> Posterior:
        """The pictures of these numbers, in this order, without hidden layers."""
        return Posterior(*(values[index] for values in _of_pictures(self)))

    def joined(self, means: np.ndarray, variances: np.ndarray) -> Posterior:
        """The posterior of larger pictures (N, H, W), given their pixels; these are their tiles, equally many each."""
        count = len(means)

        def of_tiles(values: np.ndarray) -> np.ndarray:
            return values.reshape(count, -1)

        return Posterior(
            means,
            variances,
            of_tiles(self.iterations).max(1),
            of_tiles(self.residual).max(1),
            of_tiles(self.tiles).sum(1),
            of_tiles(self.unsettled).sum(1),
            np.asarray(of_tiles(self.blind).any(1)),
            np.zeros(count),
        )

    @property
    def status(self) -> np.ndarray:
        """How the solver ended for each picture, a `Status` value, (N,)."""
        many = np.where(self.unsettled > UNSETTLED * self.tiles, Status.MAX_ITER, Status.CONVERGED)
        finite = np.isfinite(self.means).reshape(len(self.means), -1).all(1)
        return np.where(finite, many, Status.DIVERGED)


def _of_pictures(posterior: Posterior) -> list[np.ndarray]:
    """All arrays with an entry per picture, without hidden layers."""
    return [getattr(posterior, field.name) for field in fields(Posterior) if field.name != "layers"]
