"""The result of restoring a batch of images, in numpy alone, whichever engine computed it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np


class Status(IntEnum):
    """How restoring a picture ended; `sentence` is shown to users. Of the last ones it comes back as it was."""

    CONVERGED = 0
    MAX_ITER = 1
    DIVERGED = 2
    UNRECOGNISED = 3
    NOT_INK = 4
    TOO_NOISY = 5
    NO_GAIN = 6
    NOT_NOISE = 7
    UNSETTLED = 8
    FAINT = 9
    STAINED = 10
    CLASSES = 11

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def refused(self) -> bool:
        """True if the picture comes back as it was."""
        return self >= Status.DIVERGED


_SENTENCES = {
    Status.CONVERGED: "the solver converged",
    Status.MAX_ITER: "the solver stopped at its iteration limit before it converged; compare with another model",
    Status.DIVERGED: "the solver diverged (a value became infinite or NaN)",
    Status.UNRECOGNISED: "no prior recognises this picture",
    Status.NOT_INK: "its grey levels are not those of ink on paper",
    Status.TOO_NOISY: "it looks noisier than anything that can be told from noise",
    Status.NO_GAIN: "the result would hold as many wrong pixels as the picture does now",
    Status.NOT_NOISE: "what would change is not spread like noise, so details would be lost",
    Status.UNSETTLED: "the solver did not settle on an answer",
    Status.FAINT: "what is darker than its paper is too faint to be ink (less than 15 % darker)",
    Status.STAINED: "its paper is darker than half way to ink in places, as under stains and shadows",
    Status.CLASSES: "its few colours name classes, which have no order",
}


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior marginals of N images at the prior's size.

    Attributes:
        means: probability that a unit is 1, per layer (N, units); layer 0 is the pixels, row by row. NaN, like the
            variances, where the solver diverged.
        variances: variance of every unit, per layer (N, units).
        iterations: iterations spent, (N,), int64.
        residual: how far means moved in the last iteration, (N,): the largest change; of convolutional priors the
            average one of pixels.
        status: a `Status` value per image, (N,), int64.
    """

    means: tuple[np.ndarray, ...]
    variances: tuple[np.ndarray, ...]
    iterations: np.ndarray
    residual: np.ndarray
    status: np.ndarray

    def rows(self, index: np.ndarray) -> Marginals:
        """The marginals of some of the images."""
        return Marginals(
            tuple(layer[index] for layer in self.means),
            tuple(layer[index] for layer in self.variances),
            self.iterations[index],
            self.residual[index],
            self.status[index],
        )


def voided(found: Marginals) -> Marginals:
    """Treat an image with any value that is not finite as one for which the solver diverged: all its values are NaN."""
    finite = np.all([np.isfinite(layer).all(1) for layer in (*found.means, *found.variances)], 0)
    lost = (found.status == Status.DIVERGED) | ~finite
    if not lost.any():
        return found

    def void(values: np.ndarray) -> np.ndarray:
        return np.where(lost[:, None], values.dtype.type(np.nan), values)

    return replace(
        found,
        means=tuple(map(void, found.means)),
        variances=tuple(map(void, found.variances)),
        status=np.where(lost, int(Status.DIVERGED), found.status),
    )
