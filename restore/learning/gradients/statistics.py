"""Expected sufficient statistics, of which every likelihood gradient has two halves.

The gradient of a log-likelihood is the `clamped` statistics (of the data, hidden units summed out exactly) minus the
model's own. These come from samples (`clamped` of the samples) or from a fixed point (`fixed_point`).
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from restore.fields import Fields
from restore.learning.rules.contract import Gradient
from restore.priors import RBM, LayeredPrior
from restore.solvers.tap import cavity_fields


def clamped(prior: RBM, visible: Tensor, fields: Fields | None = None) -> Gradient:
    """Mean statistics over visible states (N, D), with the hidden units at their exact conditional expectation.

    Args:
        visible: the states.
        fields: `prior.hidden_fields(visible)`, if it is known already.
    """
    fields = fields or prior.hidden_fields(visible)
    hidden, _ = prior.hidden.moments(fields)
    return {
        "weights.0": prior.couplings[0].statistics(visible, hidden),
        **{f"units.0.{name}": value.mean(0) for name, value in prior.visible.statistics(visible).items()},
        **{f"units.1.{name}": value.mean(0) for name, value in prior.hidden.expected_statistics(fields).items()},
    }


def fixed_point(
    prior: LayeredPrior, means: list[Tensor], variances: list[Tensor]
) -> tuple[Gradient, list[Tensor], list[Tensor]]:
    """Mean statistics over TAP solutions (TAP machine, Alg. 2), and the solutions after one more undamped sweep.

    At a fixed point these are the derivatives of the TAP estimate of log Z in the parameters. The sweep is one of the
    solver's, so nothing is computed twice.

    Args:
        means: per layer (K, units).
        variances: per layer (K, units).
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
    """Mean statistics over visible states of a machine with several hidden layers (TAP machine, Alg. 4).

    Args:
        prior: the machine.
        visible: the states (N, D).
        above: the machine that they leave, `prior.above(visible)`.
        means, variances: near a TAP solution of `above`, per layer (N, units).
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

    Args:
        visible: states or means (batch, D).
        hidden: states or means (batch, H).
        observed: the observed images x, (batch, D).
        pairs: mean of v hᵀ over the batch, (D, H); by default visible and hidden units are independent.
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
    """As `conditional`, with the hidden units at their exact expectation given visible states.

    Args:
        machine: the machine of the observed images, `prior.given(observed)`.
    """
    hidden, _ = machine.hidden.moments(machine.hidden_fields(visible))
    return conditional(visible, hidden, observed)


def difference(data: Gradient, model: Gradient) -> Gradient:
    return {name: value - model[name] for name, value in data.items()}
