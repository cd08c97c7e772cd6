"""The mean field of an Ising model, which only knows that neighbours are alike: what a named prior has to predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.tiles.blend import Posterior, Watch

# How strongly neighbours agree: of .1 to .8, this leaves fewest wrong pixels of drawings after flips and holes.
COUPLING = 0.8

# It stops once no pixel changes by more than this, or after so many steps: further ones would only swallow thin lines.
# A step keeps a share of the means before it.
STILL = 1e-6
STEPS = 60
KEPT = 0.5

# It has converged if the last step changes pixels by less than this on average.
CONVERGED = 1e-3


@dataclass(frozen=True)
class Neighbours:
    """Each pixel agrees with the four beside it: a `restore.inference.score.Candidate`."""

    coupling: float = COUPLING
    invert: bool = False

    @property
    def names(self) -> tuple[str, str]:
        return "neighbours", "numpy"

    def quickly(self) -> Neighbours:
        return self

    def solve(self, seen: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]] = ()) -> Posterior:
        """The posterior of pictures, or of parts (N, h, w) of some."""
        means, steps, change = mean_field(damage.log_odds(seen), self.coupling)
        count, white = len(seen), (1 + means) / 2
        hidden = np.zeros(seen.shape, bool) if damage.hidden is None else np.broadcast_to(damage.hidden, seen.shape)
        return Posterior(
            white,
            white * (1 - white),
            np.full(count, steps),
            change,
            np.ones(count, int),
            (change >= CONVERGED).astype(int),
            np.asarray(hidden.all((1, 2))),
            np.zeros(count),
        )

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        """The posterior of a whole picture."""
        return self.solve(picture.values()[None], picture.damage.mapped(lambda values: values[None]))


def mean_field(evidence: np.ndarray, coupling: float) -> tuple[np.ndarray, int, np.ndarray]:
    """Means of an Ising model with four neighbours: m = tanh(coupling · sum of those beside it + evidence / 2).

    The naive mean field (MacKay, 2003, section 33.2), from log-odds of white, (N, H, W).

    Returns:
        The means, from -1 for black to 1 for white, float32; the number of steps; and the mean change of each picture
        in the last one, (N,).

    >>> speck = np.full((1, 5, 5), -2.0)
    >>> speck[0, 2, 2] = 2
    >>> bool(mean_field(speck, 0.6)[0].max() < 0)
    True
    """
    field = np.asarray(evidence, np.float32) / 2
    means, steps, moved = np.tanh(field), 0, np.ones_like(field)
    while steps < STEPS and moved.max() > STILL:
        drawn = field.copy()
        pull = np.float32(coupling) * means
        drawn[..., 1:, :] += pull[..., :-1, :]
        drawn[..., :-1, :] += pull[..., 1:, :]
        drawn[..., 1:] += pull[..., :-1]
        drawn[..., :-1] += pull[..., 1:]
        step = np.float32(1 - KEPT) * (np.tanh(drawn) - means)
        means += step
        steps, moved = steps + 1, np.abs(step)
    return means, steps, moved.mean((-2, -1))
