"""The iteration loop of every fixed-point solver.

A state is a tuple of tensors whose first dimension is the batch; a step maps states to states. Every image stops on its
own: once it has converged, or become infinite, it keeps its state, so that an image gets the same result alone and in a
batch. The iteration is written once; the loop around it is Python's, or an operation of an exported graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op

from restore.errors import UsageError
from restore.status import Status
from restore.tracing import lifted, tracing

State = tuple[Tensor, ...]

# Iterations of a GPU between two checks for convergence: a check waits for all queued work.
ASKED = 8

# The change from an old state to a new one, per image (batch,); NaN if a value that counts is NaN.
Change: TypeAlias = Callable[[State, State], Tensor]


class Rows(Protocol):
    """A batch of problems; `rows` takes some of them."""

    def rows(self, index: Tensor) -> Self: ...


Problem = TypeVar("Problem", bound=Rows)


@dataclass(frozen=True)
class Outcome:
    """The state in which each image ended; see `Solution` for iterations, residual and status."""

    state: State
    iterations: Tensor
    residual: Tensor
    status: Tensor


def check_settings(max_iter: int, tol: float, damping: float) -> None:
    """Refuse settings of an iteration that are out of range, with a UsageError."""
    if tracing():
        return
    if max_iter < 1:
        raise UsageError(f"max_iter must be at least 1, not {max_iter}")
    # Written so that NaN fails too.
    if not tol >= 0:
        raise UsageError(f"tol must not be negative, not {tol}")
    if not 0 <= damping < 1:
        raise UsageError(f"damping must lie in [0, 1), not {damping}")


def damped(new: State, old: State, damping: float) -> State:
    """(1 - damping) * new + damping * old; `damping` may be a scalar tensor, as an input of a graph."""
    if isinstance(damping, Tensor):
        return tuple(value * (1 - damping) + before * damping for value, before in zip(new, old, strict=True))
    if damping == 0:
        return new
    # `torch.lerp` takes several times as long on a CPU.
    return tuple(
        torch.add(value * (1 - damping), before, alpha=damping) for value, before in zip(new, old, strict=True)
    )


def largest_change(count: int) -> Change:
    """The largest absolute change over the first `count` tensors of the state."""

    def change(new: State, old: State) -> Tensor:
        moves = [(value - before).abs() for value, before in zip(new[:count], old[:count], strict=True)]
        largest = torch.stack([move.amax(-1) for move in moves]).amax(0)
        # In some runtimes of exported graphs a maximum ignores NaN; a sum never does.
        total = torch.stack([move.sum(-1) for move in moves]).sum(0)
        return torch.where(torch.isnan(total), total, largest)

    return change


def average_change(new: State, old: State) -> Tensor:
    """The average absolute change over the first tensor of the state, which does not grow with the image."""
    return (new[0] - old[0]).abs().mean(-1)


class Iterate(NamedTuple):
    """The state of a batch during the iteration, as in `Outcome`; `active` are the images that still move."""

    iterations: Tensor
    residual: Tensor
    status: Tensor
    active: Tensor
    state: State

    @classmethod
    def at(cls, state: State) -> Iterate:
        """The state before the first iteration."""
        batch = state[0].shape[0]
        device = state[0].device
        return cls(
            torch.zeros(batch, dtype=torch.int64, device=device),
            torch.full((batch,), torch.inf, dtype=state[0].dtype, device=device),
            torch.full((batch,), int(Status.MAX_ITER), dtype=torch.int64, device=device),
            torch.ones(batch, dtype=torch.bool, device=device),
            state,
        )

    def tensors(self) -> State:
        """All tensors in one tuple, for `of`."""
        return (*self[:-1], *self.state)

    @classmethod
    def of(cls, tensors: State) -> Iterate:
        iterations, residual, status, active, *state = tensors
        return cls(iterations, residual, status, active, tuple(state))

    def outcome(self) -> Outcome:
        return Outcome(self.state, self.iterations, self.residual, self.status)


def advance(
    step: Callable[[Problem, State], State], problem: Problem, now: Iterate, tol: float, change: Change
) -> Iterate:
    """One iteration of images that have not stopped."""
    state = step(problem, now.state)
    moved = change(state, now.state)
    broken = ~torch.isfinite(moved)
    settled = moved <= tol
    status = torch.where(settled, int(Status.CONVERGED), now.status)
    return Iterate(
        now.iterations + 1, moved, torch.where(broken, int(Status.DIVERGED), status), ~broken & ~settled, state
    )


def _only_active(now: Iterate, later: Iterate) -> Iterate:
    """Take the next state for images that still move; keep the others."""

    def chosen(new: Tensor, old: Tensor) -> Tensor:
        if new.dtype == torch.bool:  # which ONNX Runtime cannot choose from: an image that has stopped stays so
            return new & old
        return torch.where(now.active if old.dim() == 1 else now.active[:, None], new, old)

    return Iterate.of(tuple(map(chosen, later.tensors(), now.tensors())))


def iterate(
    step: Callable[[Problem, State], State],
    problem: Problem,
    state: State,
    *,
    max_iter: int,
    tol: float,
    change: Change,
    large: bool = False,
) -> Outcome:
    """Apply `step` to every image until its state changes by at most `tol`.

    Args:
        step: the fixed-point map, damping included.
        problem: what the step needs besides the state; `problem.rows(index)` takes the part of some images.
        state: where to start; every tensor has shape (batch, n).
        max_iter: iteration limit, at least 1.
        tol: an image has converged when its state changes by at most this.
        change: how far a state has moved.
        large: few images are large: in a graph all are computed until the last has stopped, as to gather those at work
            costs as much as they do; and the first iteration stands before the loop, as it is often the only one.
    """
    loop = partial(_traced, gathers=not large) if tracing() else _gathering
    return loop(step, problem, Iterate.at(state), max_iter, tol, change).outcome()


def _gathering(
    step: Callable[[Problem, State], State], problem: Problem, now: Iterate, max_iter: int, tol: float, change: Change
) -> Iterate:
    """The loop in Python. When half of the images at work are done, the rest are gathered into a smaller batch."""
    final = tuple(value.clone() for value in now.tensors())
    at_work = torch.arange(len(now.active), device=now.active.device)
    every = ASKED if now.active.is_cuda else 1
    for iteration in range(1, max_iter + 1):
        now = _only_active(now, advance(step, problem, now, tol, change))
        if iteration % every:
            continue
        remaining = int(now.active.sum())
        if remaining == 0:
            break
        if 2 * remaining <= len(now.active):
            _store(final, at_work, now)
            keep = now.active.nonzero().squeeze(-1)
            at_work, problem = at_work[keep], problem.rows(keep)
            now = Iterate.of(tuple(value[keep] for value in now.tensors()))
    _store(final, at_work, now)
    return Iterate.of(final)


def _store(final: State, rows: Tensor, now: Iterate) -> None:
    for store, value in zip(final, now.tensors(), strict=True):
        store[rows] = value


def _traced(
    step: Callable[[Problem, State], State],
    problem: Problem,
    now: Iterate,
    max_iter: int,
    tol: float,
    change: Change,
    *,
    gathers: bool,
) -> Iterate:
    """The loop as one operation of a graph.

    The operation is called as such: `while_loop` would have the bodies compiled before they are traced, which takes
    nearly half of an export. In return what the bodies use must be among their arguments.
    """
    done = torch.zeros((), dtype=torch.int64)
    if not gathers:
        now, done = advance(step, problem, now, tol, change), done + 1
    carried = (done, *now.tensors())
    used, rebuilt = lifted((step, problem, max_iter, tol, change))

    def split(tensors: State) -> tuple[Iterate, Any]:
        return Iterate.of(tensors[: len(carried) - 1]), rebuilt(tensors[len(carried) - 1 :])

    def unfinished(iteration: Tensor, *tensors: Tensor) -> Tensor:
        before, (_, _, limit, _, _) = split(tensors)
        return (iteration < limit) & before.active.any()

    def every(iteration: Tensor, *tensors: Tensor) -> State:
        before, (step, problem, _, tol, change) = split(tensors)
        return (iteration + 1, *_only_active(before, advance(step, problem, before, tol, change)).tensors())

    def at_work(iteration: Tensor, *tensors: Tensor) -> State:
        before, (step, problem, _, tol, change) = split(tensors)
        # Only the images at work are computed: starts of one image take very different times.
        rows = before.active.nonzero().squeeze(-1)
        torch._check(rows.shape[0] >= 1)
        part = Iterate.of(tuple(value.index_select(0, rows) for value in before.tensors()))
        moved = advance(step, problem.rows(rows), part, tol, change).tensors()
        both = zip(before.tensors(), moved, strict=True)
        return (iteration + 1, *(value.index_copy(0, rows, new) for value, new in both))

    # Declared for one tensor only.
    _, *tensors = while_loop_op(unfinished, at_work if gathers else every, carried, used)  # type: ignore[arg-type]
    return Iterate.of(tuple(tensors))
