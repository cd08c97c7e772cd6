"""The model's half of a likelihood gradient, from fixed points of the machine without evidence.

The last iteration is undamped, whatever the solver, and gives the statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from restore.learning.gradients.statistics import fixed_point
from restore.learning.rules.contract import Gradient
from restore.priors import RBM, LayeredPrior
from restore.solvers import TAP, AdaptiveTAP
from restore.solvers.adaptive_tap import closing
from restore.solvers.layered_map import watched
from restore.solvers.loop import Change, State, iterate, largest_change


class Free(NamedTuple):
    """Solutions of the machine without evidence.

    Attributes:
        statistics: their mean; at fixed points, the derivative of the estimate of log Z in each parameter.
        state: the solutions, visible means first.
        monitors: numbers for the log.
    """

    statistics: Gradient
    state: State
    monitors: dict[str, Tensor]


def by_tap(solver: TAP, prior: LayeredPrior, start: State) -> Free:
    """Find solutions by TAP."""
    depth = len(prior.layers)
    before = _before_last(solver, prior, start, watched(prior))
    statistics, means, variances = fixed_point(prior, list(before[:depth]), list(before[depth:]))
    return Free(statistics, (*means, *variances), {"solution_change": _moved(means[0], before[0])})


def by_adaptive_tap(solver: AdaptiveTAP, prior: RBM, start: State) -> Free:
    """Find solutions by adaptive TAP; also monitor how many had no Gaussian side, so that TAP stood in."""
    parts = [_part(solver, prior, tuple(value[rows] for value in start)) for rows in solver.parts(prior, start[0])]
    shares = [len(part.state[0]) / len(start[0]) for part in parts]

    def mean(values: list[Tensor]) -> Tensor:
        return torch.stack([share * value for share, value in zip(shares, values, strict=True)]).sum(0)

    return Free(
        {name: mean([part.statistics[name] for part in parts]) for name in parts[0].statistics},
        tuple(torch.cat(values) for values in zip(*(part.state for part in parts), strict=True)),
        {name: mean([part.monitors[name] for part in parts]) for name in parts[0].monitors},
    )


def _part(solver: AdaptiveTAP, prior: RBM, start: State) -> Free:
    """Solutions that are computed together."""
    before = _before_last(solver, prior, start, largest_change(2 * len(prior.layers)))
    last = closing(prior, before)
    visible, hidden, *_ = last.state
    statistics = {"weights.0": prior.couplings[0].statistics(visible, hidden) + last.covariance}
    for index, (layer, fields) in enumerate(zip(prior.layers, last.fields, strict=True)):
        for name, value in layer.expected_statistics(fields).items():
            statistics[f"units.{index}.{name}"] = value.mean(0)
    change = _moved(visible, before[0])
    return Free(statistics, last.state, {"solution_change": change, "lawless": last.lawless.to(change).mean()})


def _before_last(solver: TAP | AdaptiveTAP, prior: LayeredPrior, start: State, change: Change) -> State:
    """The state before the last iteration; `change` decides whether a solution has converged."""
    if solver.max_iter == 1:
        return start
    step: Callable[[Any, State], State] = solver.step
    return iterate(step, prior, start, max_iter=solver.max_iter - 1, tol=solver.tol, change=change).state


def _moved(means: Tensor, before: Tensor) -> Tensor:
    """How far the solutions are from fixed points."""
    return (means - before).abs().mean()


class Kind(NamedTuple):
    """A solver for the model's half of the gradient.

    Attributes:
        solver: makes it from max_iter, tol and damping.
        solutions: finds its solutions.
        any_units: whether it takes units of any kind in any number of layers; if not, only bits in two layers.
    """

    solver: Callable[..., TAP | AdaptiveTAP]
    solutions: Callable[[Any, Any, State], Free]
    any_units: bool = True


# By their names in recipes.
FREE = {"tap": Kind(TAP, by_tap), "adaptive_tap": Kind(AdaptiveTAP, by_adaptive_tap, any_units=False)}
