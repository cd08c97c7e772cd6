"""The iteration loop of every fixed-point solver. It knows no physics.

A state is a tuple of tensors whose first dimension is the batch; a step maps states to states. Every image stops on its
own: an image that has converged, or has become infinite, keeps its state from then on, so that a batch gives what each
image alone gives. Once half of the images in work are done, the rest are gathered into a smaller batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.marginals import Status

State = tuple[Tensor, ...]


class Rows(Protocol):
    """A batch of problems from which some can be taken."""

    def rows(self, index: Tensor) -> Self: ...


Problem = TypeVar("Problem", bound=Rows)


@dataclass(frozen=True)
class Outcome:
    """The state in which each image ended, and how: see `Solution` for iterations, residual and status."""

    state: State
    iterations: Tensor
    residual: Tensor
    status: Tensor


def check_settings(max_iter: int, tol: float, damping: float) -> None:
    """Refuse settings of an iteration that are out of range.

    Raises:
        UsageError: naming the setting.
    """
    if max_iter < 1:
        raise UsageError(f"max_iter must be at least 1, not {max_iter}")
    # Written so that NaN fails too.
    if not tol >= 0:
        raise UsageError(f"tol must not be negative, not {tol}")
    if not 0 <= damping < 1:
        raise UsageError(f"damping must lie in [0, 1), not {damping}")


def damped(new: State, old: State, damping: float) -> State:
    """(1 - damping) * new + damping * old."""
    if damping == 0:
        return new
    # Not `torch.lerp`, which takes several times as long on a CPU.
    return tuple(
        torch.add(value * (1 - damping), before, alpha=damping) for value, before in zip(new, old, strict=True)
    )


def change(new: State, old: State, watched: int) -> Tensor:
    """Largest absolute change per image over the first `watched` tensors of the state; NaN if any value is."""
    return torch.stack(
        [(value - before).abs().amax(-1) for value, before in zip(new[:watched], old[:watched], strict=True)]
    ).amax(0)


def iterate(
    step: Callable[[Problem, State], State],
    problem: Problem,
    state: State,
    *,
    max_iter: int,
    tol: float,
    watched: int,
) -> Outcome:
    """Apply `step` to every image until its state changes by at most `tol`.

    Args:
        step: the fixed-point map, damping included.
        problem: what the step needs besides the state; `problem.rows(index)` gives it for some of the images.
        state: where to start; every tensor has shape (batch, n).
        max_iter: iteration limit, at least 1.
        tol: an image has converged when `change` is at most this.
        watched: how many of the state's tensors decide about convergence.
    """
    batch, device = len(state[0]), state[0].device
    iterations = torch.zeros(batch, dtype=torch.int64, device=device)
    residual = torch.full((batch,), torch.inf, dtype=state[0].dtype, device=device)
    status = torch.full((batch,), int(Status.MAX_ITER), dtype=torch.int64, device=device)
    final = tuple(value.clone() for value in state)
    at_work = torch.arange(batch, device=device)
    active = torch.ones(batch, dtype=torch.bool, device=device)
    remaining = batch
    for iteration in range(1, max_iter + 1):
        stepped = step(problem, state)
        moved = change(stepped, state, watched)
        if remaining < len(active):
            stepped = tuple(torch.where(active[:, None], new, old) for new, old in zip(stepped, state, strict=True))
        state = stepped
        residual[at_work] = torch.where(active, moved, residual[at_work])
        iterations[at_work] = torch.where(active, iteration, iterations[at_work])
        broken = active & ~torch.isfinite(moved)
        settled = active & (moved <= tol)
        status[at_work[broken]] = int(Status.DIVERGED)
        status[at_work[settled]] = int(Status.CONVERGED)
        active = active & ~broken & ~settled
        remaining = int(active.sum())
        if remaining == 0:
            break
        if 2 * remaining <= len(active):
            for store, value in zip(final, state, strict=True):
                store[at_work] = value
            keep = active.nonzero().squeeze(-1)
            at_work, active = at_work[keep], active[keep]
            problem, state = problem.rows(keep), tuple(value[keep] for value in state)
    for store, value in zip(final, state, strict=True):
        store[at_work] = value
    return Outcome(final, iterations, residual, status)
