"""The posterior of a prior that is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors import GaussianMixture
from restore.solvers.solution import Solution
from restore.status import Status


@dataclass(frozen=True)
class Exact:
    """Marginals of a mixture of Gaussians, in one step; the settings of an iteration have no effect.

    >>> mixture = GaussianMixture(torch.zeros(1, 2, 1), torch.ones(1), torch.zeros(1))
    >>> Exact().solve(mixture).means[0].tolist()
    [[0.5, 0.5]]
    """

    max_iter: int = 1
    tol: float = 0.0
    damping: float = 0.0

    def solve(self, machine: GaussianMixture, start: Tensor | None = None) -> Solution:
        """As in `FixedPoint`."""
        if not isinstance(machine, GaussianMixture):
            raise UsageError(f"exact solves mixtures of Gaussians, not {type(machine).__name__}; take another solver")
        if start is not None:
            raise UsageError("exact starts by itself; give no start")
        mean, variance, log_partition = machine.posterior()
        sound = torch.isfinite(log_partition) & torch.isfinite(mean).all(-1)
        once = torch.ones_like(log_partition, dtype=torch.int64)
        status = torch.where(sound, int(Status.CONVERGED) * once, int(Status.DIVERGED) * once)
        return Solution((mean,), (variance,), log_partition.double(), once, torch.zeros_like(log_partition), status)
