"""The result of a solver: marginals, and whether they can be trusted, for every image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Solution:
    """Marginals of a batch of machines.

    Attributes:
        means: expected value of every unit, per layer (batch, units).
        variances: variance of every unit, per layer (batch, units).
        log_partition: the method's estimate of log Z per image (batch,); minus the free energy.
        iterations: iterations spent per image (batch,), int64.
        residual: how far means moved in the last iteration, per image (batch,): what `tol` limits.
        status: a `restore.marginals.Status` value per image (batch,), int64.
        pairs: E[x_0 x_1^T] averaged over the batch, (units of layer 0, units of layer 1); None if not asked for.
    """

    means: tuple[Tensor, ...]
    variances: tuple[Tensor, ...]
    log_partition: Tensor
    iterations: Tensor
    residual: Tensor
    status: Tensor
    pairs: Tensor | None = None

    def rows(self, index: Tensor) -> Solution:
        """The solution of some images, by number, in this order; without `pairs`."""

        def taken(value: Tensor) -> Tensor:
            return value.index_select(0, index)

        return Solution(
            tuple(map(taken, self.means)),
            tuple(map(taken, self.variances)),
            *map(taken, (self.log_partition, self.iterations, self.residual, self.status)),
        )

    def put(self, rows: Tensor, other: Solution) -> Solution:
        """The same with the solutions of some images, by number, replaced by others; without `pairs`."""

        def put(value: Tensor, new: Tensor) -> Tensor:
            return value.index_copy(0, rows, new)

        return Solution(
            tuple(map(put, self.means, other.means)),
            tuple(map(put, self.variances, other.variances)),
            put(self.log_partition, other.log_partition),
            put(self.iterations, other.iterations),
            put(self.residual, other.residual),
            put(self.status, other.status),
        )


def concatenate(solutions: Sequence[Solution]) -> Solution:
    """Join the solutions of consecutive batches."""
    return Solution(
        tuple(torch.cat(layer) for layer in zip(*(solution.means for solution in solutions), strict=True)),
        tuple(torch.cat(layer) for layer in zip(*(solution.variances for solution in solutions), strict=True)),
        torch.cat([solution.log_partition for solution in solutions]),
        torch.cat([solution.iterations for solution in solutions]),
        torch.cat([solution.residual for solution in solutions]),
        torch.cat([solution.status for solution in solutions]),
        _average([(len(solution.status), solution.pairs) for solution in solutions]),
    )


def _average(parts: Sequence[tuple[int, Tensor | None]]) -> Tensor | None:
    """The average over a batch from the averages over its parts, given with their sizes."""
    weighted = [size * pairs for size, pairs in parts if pairs is not None]
    return torch.stack(weighted).sum(0) / sum(size for size, _ in parts) if weighted else None
