"""The result of a solver for every image: marginals and how they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
        residual: how far what the solver watches moved in the last iteration, per image (batch,): what `tol` limits.
        status: a `restore.status.Status` value per image (batch,), int64.
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

        return _mapped(lambda value: value.index_select(0, index), self)

    def put(self, rows: Tensor, other: Solution) -> Solution:
        """The same with the solutions of some images, by number, replaced by others; without `pairs`."""

        return _mapped(lambda value, new: value.index_copy(0, rows, new), self, other)

    def moved(self, device: torch.device) -> Solution:
        """The same on a device; without `pairs`."""
        return _mapped(lambda value: value.to(device), self)


def concatenate(solutions: Sequence[Solution]) -> Solution:
    """Join the solutions of consecutive batches."""
    pairs = _average([(len(solution.status), solution.pairs) for solution in solutions])
    return replace(_mapped(lambda *values: torch.cat(values), *solutions), pairs=pairs)


def _mapped(change: Callable[..., Tensor], *solutions: Solution) -> Solution:
    """Apply `change` to every tensor with an entry per image, across the solutions; without `pairs`."""
    means, variances = (
        tuple(map(change, *(getattr(solution, name) for solution in solutions))) for name in ("means", "variances")
    )
    names = ("log_partition", "iterations", "residual", "status")
    return Solution(means, variances, *(change(*(getattr(solution, name) for solution in solutions)) for name in names))


def _average(parts: Sequence[tuple[int, Tensor | None]]) -> Tensor | None:
    """The average over a batch from the averages over its parts, given with their sizes."""
    weighted = [size * pairs for size, pairs in parts if pairs is not None]
    return torch.stack(weighted).sum(0) / sum(size for size, _ in parts) if weighted else None
