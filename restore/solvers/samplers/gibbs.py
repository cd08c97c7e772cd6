"""Gibbs sampling: exact in the long run, and slow to leave a mode. Bipartite machines are sampled layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.marginals import Status
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.solvers.layered_map import mean_field_state
from restore.solvers.solution import Solution


def gibbs_steps(
    machine: RBM | FullyVisible, visible: Tensor, steps: int, generator: torch.Generator | None = None
) -> Tensor:
    """Visible states (batch, D) after `steps` sweeps over all units."""
    for _ in range(steps):
        visible = machine.gibbs_sweep(visible, generator)
    return visible


def layered_steps(
    machine: LayeredPrior, visible: Tensor, steps: int, generator: torch.Generator | None = None
) -> Tensor:
    """As `gibbs_steps`, for any number of hidden layers, which start from the means that follow from the image."""
    states = mean_field_state(machine, visible)[: len(machine.layers)]
    for _ in range(steps):
        states = machine.sweep(states, generator)
    return states[0]


@dataclass(frozen=True)
class Gibbs:
    """Marginals by Gibbs sampling: averages along one chain of random states per image.

    Attributes:
        burn_in: sweeps discarded first.
        samples: sweeps averaged. Each unit's conditional mean is averaged, which has less noise than its value.
        tol: an image counts as converged when the means of the two halves of its chain differ by at most this.

    >>> machine = RBM.binary(torch.full((2, 1), 2.0), torch.full((2,), -1.0), torch.full((1,), -2.0))
    >>> found = Gibbs(burn_in=5, samples=10).solve(machine, torch.zeros(1000, 2), torch.Generator().manual_seed(0))
    >>> round(found.means[0].mean().item(), 1)  # of 1000 chains; exactly one half
    0.5
    """

    burn_in: int = 100
    samples: int = 200
    tol: float = 0.1

    def __post_init__(self) -> None:
        if self.burn_in < 0 or self.samples < 2:
            raise UsageError(f"a chain needs burn_in >= 0 and samples >= 2, not {self.burn_in} and {self.samples}")

    def solve(self, machine: RBM, start: Tensor, generator: torch.Generator | None = None) -> Solution:
        """Run one chain per image from visible states (batch, D). A chain gives no log Z: `log_partition` is NaN."""
        visible = gibbs_steps(machine, start, self.burn_in, generator)
        half = self.samples // 2
        visible, first = _averages(machine, visible, half, generator)
        _, second = _averages(machine, visible, self.samples - half, generator)
        share = half / self.samples
        mean_v, mean_h, square_v, square_h = (
            share * early + (1 - share) * late for early, late in zip(first, second, strict=True)
        )
        residual = (first[0] - second[0]).abs().amax(-1)
        status = torch.where(residual <= self.tol, int(Status.CONVERGED), int(Status.MAX_ITER))
        status = status.masked_fill(~torch.isfinite(residual), int(Status.DIVERGED))
        return Solution(
            (mean_v, mean_h),
            (square_v - mean_v**2, square_h - mean_h**2),
            torch.full_like(residual, torch.nan),
            torch.full_like(status, self.burn_in + self.samples),
            residual,
            status,
        )


def _averages(
    machine: RBM, visible: Tensor, sweeps: int, generator: torch.Generator | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The ends of chains, and averages along them of E[v], E[h], E[v²], E[h²], each given the other layer."""
    totals: tuple[Tensor, ...] = ()
    for _ in range(sweeps):
        hidden_mean, hidden_variance = machine.hidden.moments(machine.hidden_fields(visible))
        hidden = machine.sample_hidden(visible, generator)
        mean, variance = machine.visible.moments(machine.visible_fields(hidden))
        visible = machine.sample_visible(hidden, generator)
        found = (mean, hidden_mean, variance + mean**2, hidden_variance + hidden_mean**2)
        totals = tuple(map(torch.add, totals, found)) if totals else found
    return visible, tuple(total / sweeps for total in totals)
