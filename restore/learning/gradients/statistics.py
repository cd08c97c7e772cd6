"""Expected sufficient statistics: a likelihood gradient is those of the data minus those of the model.

The data's are `clamped`: hidden units are summed out exactly. The model's come from samples (`clamped` again) or from
fixed points of the machine without evidence (`Free`), whose last iteration is undamped, whatever the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.rules.contract import Gradient
from restore.priors import RBM, LayeredPrior
from restore.solvers import TAP, AdaptiveTAP
from restore.solvers.adaptive_tap import closing
from restore.solvers.loop import Change, State, iterate, largest_change
from restore.solvers.tap import cavity_fields


class Clamped(NamedTuple):
    """Visible states (N, D), the means of hidden units given each (N, H), and the mean statistics of all units."""

    visible: Tensor
    hidden: Tensor
    units: Gradient

    @classmethod
    def of(cls, prior: RBM, visible: Tensor, fields: Fields | None = None) -> Clamped:
        """`fields` are `prior.hidden_fields(visible)`, if they are known already."""
        expected = prior.hidden.expected_statistics(fields or prior.hidden_fields(visible))
        units = {f"units.0.{name}": value.mean(0) for name, value in prior.visible.statistics(visible).items()}
        units |= {f"units.1.{name}": value.mean(0) for name, value in expected.items()}
        # Every type of unit has this parameter, which multiplies x.
        return cls(visible, expected["bias"], units)

    def weighed(self, weight: float, offsets: Sequence[Tensor] = ()) -> tuple[Tensor, Tensor]:
        """The states of both layers, minus the offsets if there are any; their product has this weight."""
        if not offsets:
            return self.visible, self.hidden * weight
        below, above = offsets
        return self.visible - below, (self.hidden - above).mul_(weight)


def clamped(prior: RBM, visible: Tensor) -> Gradient:
    """Mean statistics over visible states (N, D), with the hidden units at their exact conditional expectation."""
    state = Clamped.of(prior, visible)
    return {"weights.0": prior.couplings[0].statistics(state.visible, state.hidden), **state.units}


def fixed_point(
    prior: LayeredPrior, means: list[Tensor], variances: list[Tensor]
) -> tuple[Gradient, list[Tensor], list[Tensor]]:
    """Mean statistics over TAP solutions (TAP machine, Alg. 2), and the solutions after one more undamped sweep.

    At a fixed point these are the derivatives of the TAP estimate of log Z in the parameters. Means and variances are
    those of each layer, (K, units).
    """
    means, variances = list(means), list(variances)
    statistics: Gradient = {}
    depth = len(prior.layers)
    for index in (*range(1, depth, 2), *range(0, depth, 2)):
        fields = cavity_fields(prior, index, means, variances)
        layer = prior.layers[index]
        means[index], variances[index] = layer.moments(fields)
        for name, value in layer.expected_statistics(fields).items():
            statistics[f"units.{index}.{name}"] = value.mean(0)
    sides = zip(pairwise(means), pairwise(variances), strict=True)
    for index, (coupling, (mean, variance)) in enumerate(zip(prior.couplings, sides, strict=True)):
        statistics[f"weights.{index}"] = coupling.tap_statistics(mean, variance)
    return statistics, means, variances


def clamped_above(
    prior: LayeredPrior, visible: Tensor, above: LayeredPrior, means: list[Tensor], variances: list[Tensor]
) -> Gradient:
    """Mean statistics over visible states (N, D) of a machine with several hidden layers (TAP machine, Alg. 4).

    Means and variances are near a TAP solution of `above`, the machine that the states leave, `prior.above(visible)`.
    """
    inner, means, _ = fixed_point(above, means, variances)
    raised = {_raised(name): value for name, value in inner.items()}
    return raised | {
        "weights.0": prior.couplings[0].statistics(visible, means[0]),
        **{f"units.0.{name}": value.mean(0) for name, value in prior.layers[0].statistics(visible).items()},
    }


def _raised(name: str) -> str:
    """The name in the whole machine of a parameter of `above`, one layer further up."""
    kind, layer, *rest = name.split(".")
    return ".".join([kind, str(int(layer) + 1), *rest])


def conditional(visible: Tensor, hidden: Tensor, observed: Tensor, pairs: Tensor | None = None) -> Gradient:
    """Mean statistics of a conditional RBM over a batch (CRBM-BP, eq. 5 and appendix A).

    Visible and hidden units are states or means, (batch, units). `pairs` is the mean of v hᵀ over the batch; by default
    they are independent.
    """
    count = len(visible)
    return {
        "weights.0": visible.T @ hidden / count if pairs is None else pairs,
        "units.0.bias": visible.mean(0),
        "units.1.bias": hidden.mean(0),
        "inputs.0": visible.T @ observed / count,
        "inputs.1": hidden.T @ observed / count,
    }


def conditional_clamped(machine: RBM, visible: Tensor, observed: Tensor) -> Gradient:
    """As `conditional`, with the hidden units of `prior.given(observed)` at their exact expectation."""
    hidden, _ = machine.hidden.moments(machine.hidden_fields(visible))
    return conditional(visible, hidden, observed)


def difference(data: Gradient, model: Gradient) -> Gradient:
    return {name: value - model[name] for name, value in data.items()}


class Free(NamedTuple):
    """Solutions of the machine without evidence, visible means first, their mean statistics, and numbers for the log.

    At fixed points the statistics are the derivative of the estimate of log Z in each parameter.
    """

    statistics: Gradient
    state: State
    monitors: dict[str, Tensor]


def by_tap(solver: TAP, prior: LayeredPrior, start: State) -> Free:
    depth = len(prior.layers)
    before = _before_last(solver, prior, start, solver.watched(prior))
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
    if solver.max_iter == 1:
        return start
    step: Callable[[Any, State], State] = solver.step
    return iterate(step, prior, start, max_iter=solver.max_iter - 1, tol=solver.tol, change=change).state


def _moved(means: Tensor, before: Tensor) -> Tensor:
    return (means - before).abs().mean()


class Kind(NamedTuple):
    """A solver for the model's half of the gradient, made from max_iter, tol and damping, and what finds its solutions.

    If not `any_units`, it takes bits in two layers only.
    """

    solver: Callable[..., TAP | AdaptiveTAP]
    solutions: Callable[[Any, Any, State], Free]
    any_units: bool = True


# By their names in recipes.
FREE_PHASES = {"tap": Kind(TAP, by_tap), "adaptive_tap": Kind(AdaptiveTAP, by_adaptive_tap, any_units=False)}
