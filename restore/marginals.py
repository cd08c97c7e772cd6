"""The result of restoring a batch of images, in numpy alone, whichever engine computed it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np


class Status(IntEnum):
    """How the iteration of one image ended; `sentence` is shown to users."""

    CONVERGED = 0
    MAX_ITER = 1
    DIVERGED = 2

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "the solver converged",
    Status.MAX_ITER: "the solver stopped at its iteration limit before it converged; compare with another model",
    Status.DIVERGED: "the solver diverged (a value became infinite or NaN); choose another model",
}


@dataclass(frozen=True, eq=False)
class NoiseLevel:
    """The noise levels of N images with the highest evidence, among G levels.

    Attributes:
        chosen: the level of each image, between those tried, (N,).
        tried: the levels that could be tried, increasing, (G,).
        evidence: log p(image | level) + log Z of the prior, in nats, (N, G); -inf at levels that were passed over,
            since a level between them and the best is worse; NaN where the solver diverged, and such a level is left
            out.
        converged: boolean (N, G); where the solver did not converge, the evidence is less certain.
        rates: flip probabilities of white and of black pixels, (N, 2), which differ where held-out pixels say so (see
            `restore.inference.noise.rates`); `chosen` is then the best single one. None for other levels than flips,
            and for small images.
    """

    chosen: np.ndarray
    tried: np.ndarray
    evidence: np.ndarray
    converged: np.ndarray
    rates: np.ndarray | None = None

    def inverted(self) -> NoiseLevel:
        """The levels of the inverted images."""
        return self if self.rates is None else replace(self, rates=self.rates[:, ::-1])


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior marginals of N images at the prior's size.

    Attributes:
        means: probability that a unit is 1, per layer (N, units); layer 0 is the pixels, row by row. NaN, like the
            variances and `log_partition`, where the solver diverged.
        variances: variance of every unit, per layer (N, units).
        log_partition: the method's estimate of log Z of the prior under the evidence, (N,), float64.
        iterations: iterations spent, (N,), int64.
        residual: how far means moved in the last iteration, (N,): the largest change; of convolutional priors the
            average one of pixels.
        status: a `Status` value per image, (N,), int64.
        evidence: log p(image | noise level) + log Z of the prior, in nats, (N,), float64; None for conditional priors.
        noise: the noise levels that were chosen; None if they were given.
        model: name of the prior.
        shortfall: by how many nats independent pixels, or other priors, explain an image better than the prior does, or
            than it should lead them, (N,); 0 if in doubt or unknown. See `restore.inference.explained`.
        notes: of each image, what its user should know, one sentence each; empty where pictures were not restored.
    """

    means: tuple[np.ndarray, ...]
    variances: tuple[np.ndarray, ...]
    log_partition: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    status: np.ndarray
    evidence: np.ndarray | None = None
    noise: NoiseLevel | None = None
    model: str = ""
    shortfall: np.ndarray | None = None
    notes: tuple[tuple[str, ...], ...] = ()

    def rows(self, index: np.ndarray) -> Marginals:
        """The marginals of some of the images, of which none may have had its level chosen."""
        assert self.noise is None

        def some(values: np.ndarray | None) -> Any:
            return None if values is None else values[index]

        return Marginals(
            tuple(map(some, self.means)),
            tuple(map(some, self.variances)),
            some(self.log_partition),
            some(self.iterations),
            some(self.residual),
            some(self.status),
            some(self.evidence),
            model=self.model,
            shortfall=some(self.shortfall),
        )


def voided(found: Marginals) -> Marginals:
    """Treat an image with any pixel that is not finite as one for which the solver diverged: all its values are NaN."""
    pixels = np.isfinite(found.means[0]).all(1) & np.isfinite(found.variances[0]).all(1)
    lost = (found.status == Status.DIVERGED) | ~pixels
    if not lost.any():
        return found

    def void(values: np.ndarray) -> np.ndarray:
        return np.where(lost[:, None] if values.ndim > 1 else lost, values.dtype.type(np.nan), values)

    return replace(
        found,
        means=tuple(map(void, found.means)),
        variances=tuple(map(void, found.variances)),
        log_partition=void(found.log_partition),
        status=np.where(lost, int(Status.DIVERGED), found.status),
    )
