"""Neighbours that agree: an Ising field, by which a prior has to be better than what knows nothing of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.engine import Posterior
from restore.inference.tiles.blend import Watch, batch
from restore.zoo.inference import Effort

# The coupling of neighbours: of .1 to .8, this leaves fewest wrong pixels of drawings after flips and holes.
COUPLING = 0.8

# Neighbours stop once no pixel changes by more than this, or after this number of steps: more would only swallow thin
# lines. A step keeps a share of the means before it.
NEIGHBOURS_TOLERANCE = 1e-6
MOST_STEPS = 60
KEPT = 0.5

# Neighbours have converged if the last step changes pixels by less than this on average.
NEIGHBOURS_CONVERGED = 1e-3


@dataclass(frozen=True)
class Neighbours:
    """Each pixel agrees with the four beside it, and nothing else is known: a named prior has to predict better."""

    coupling: float = COUPLING
    prior: None = None

    @property
    def names(self) -> tuple[str, str]:
        return "neighbours", "numpy"

    def solve(
        self, pictures: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]] = (), effort: Effort = "full"
    ) -> Posterior:
        means, steps, change = mean_field(damage.log_odds(pictures), self.coupling)
        white = (1 + means) / 2
        posterior = Posterior.of_pixels(white, white * (1 - white), steps)
        return replace(posterior, residual=change, unsettled=(change >= NEIGHBOURS_CONVERGED).astype(int))

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        return self.solve(*batch(picture))


def mean_field(evidence: np.ndarray, coupling: float, most: int = MOST_STEPS) -> tuple[np.ndarray, int, np.ndarray]:
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
    means = np.tanh(field)
    steps = 0
    moved = np.ones_like(field)
    while steps < most and moved.max() > NEIGHBOURS_TOLERANCE:
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
