"""Block Gibbs sampling of a bipartite machine: exact in the long run, and slow to leave a mode."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors import RBM
from restore.solvers.solution import Solution, Status


def gibbs_steps(machine: RBM, visible: Tensor, steps: int, generator: torch.Generator | None = None) -> Tensor:
    """Visible states (batch, D) after `steps` sweeps h ~ p(h|v), v ~ p(v|h)."""
    for _ in range(steps):
        visible = machine.sample_visible(machine.sample_hidden(visible, generator), generator)
    return visible


@dataclass(frozen=True)
class Gibbs:
    """Marginals as averages along one chain per image.

    Attributes:
        burn_in: sweeps thrown away first.
        samples: sweeps averaged; what is averaged is each unit's conditional mean, which has less noise than its value.
        tol: an image counts as converged when the means of the two halves of its chain differ by at most this.
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
        halves = []
        for length in (self.samples // 2, self.samples - self.samples // 2):
            sums: list[Tensor] = [torch.zeros(()), torch.zeros(()), torch.zeros(()), torch.zeros(())]
            for _ in range(length):
                hidden_moments = machine.hidden.moments(machine.hidden_fields(visible))
                hidden = machine.sample_hidden(visible, generator)
                visible_moments = machine.visible.moments(machine.visible_fields(hidden))
                visible = machine.sample_visible(hidden, generator)
                for slot, (mean, variance) in enumerate((visible_moments, hidden_moments)):
                    sums[slot] = sums[slot].to(mean) + mean
                    sums[2 + slot] = sums[2 + slot].to(mean) + variance + mean * mean
            halves.append([total / length for total in sums])
        share = (self.samples // 2) / self.samples
        first, second = halves
        mean_v, mean_h, square_v, square_h = (share * a + (1 - share) * b for a, b in zip(first, second, strict=True))
        residual = (first[0] - second[0]).abs().amax(-1)
        converged = torch.where(residual <= self.tol, int(Status.CONVERGED), int(Status.MAX_ITER))
        return Solution(
            (mean_v, mean_h),
            (square_v - mean_v**2, square_h - mean_h**2),
            torch.full_like(residual, torch.nan),
            torch.full_like(converged, self.burn_in + self.samples),
            residual,
            converged,
        )
