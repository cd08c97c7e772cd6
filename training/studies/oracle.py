"""Exact answers for small machines: the oracle that every solver and learner is tested against.

For an RBM, the smaller layer of two-valued units is enumerated, at a cost of 2**(its size) states, and the other layer
is summed out in closed form, whatever its units are. For a fully visible machine all 2**D states are enumerated. If
both layers are Gaussian, the machine is one normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.fully_visible import FullyVisible
from restore.priors.rbm import RBM
from restore.priors.stability import UNSTABLE, couplings_among, joined, stable
from restore.units import Bernoulli, Gaussian, Spin, Units
from restore.units.contract import for_several

MAX_ENUMERATED = 20


@dataclass(frozen=True)
class ExactMoments:
    """Expectations under a machine, with a leading batch dimension if the machine's fields have one.

    Attributes:
        log_partition: log Z, shape (...,).
        pairs: E[v h^T], shape (..., D, H); for a fully visible machine E[v v^T], shape (..., D, D).
        statistics: expected sufficient statistics per layer, named as its parameters, each (..., units). For a fully
            visible machine the hidden layer has no units.
    """

    log_partition: Tensor
    pairs: Tensor
    statistics: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]

    @property
    def visible(self) -> Tensor:
        """E[v], shape (..., D)."""
        return self.statistics[0]["bias"]

    @property
    def hidden(self) -> Tensor:
        """E[h], shape (..., H)."""
        return self.statistics[1]["bias"]


def binary_states(count: int, like: Tensor) -> Tensor:
    """All states of `count` binary units, (2**count, count), as `like`; raises UsageError above MAX_ENUMERATED."""
    if count > MAX_ENUMERATED:
        raise UsageError(
            f"enumeration needs at most {MAX_ENUMERATED} units in the smaller layer, not {count}; use a solver instead"
        )
    codes = torch.arange(2**count, device=like.device)
    return ((codes[:, None] >> torch.arange(count, device=like.device)) & 1).to(like.dtype)


def _all_values(units: Units, like: Tensor) -> Tensor:
    """All states of a layer of two-valued units, (2**n, n)."""
    low, high = units.support
    return low + (high - low) * binary_states(units.size, like)


def _has_two_values(units: Units) -> bool:
    return isinstance(units, Bernoulli | Spin)


def exact_moments(machine: RBM | FullyVisible) -> ExactMoments:
    """Compute log Z and the expected sufficient statistics of a machine exactly.

    Raises:
        UsageError: if no layer of two-valued units has at most MAX_ENUMERATED, or the machine is unstable.
    """
    if isinstance(machine, FullyVisible):
        return _all_states(machine)
    visible, hidden = machine.layers
    if isinstance(visible, Gaussian) and isinstance(hidden, Gaussian):
        return _normal(machine)
    if not _has_two_values(hidden) or (_has_two_values(visible) and hidden.size > visible.size):
        if not _has_two_values(visible):
            raise UsageError("enumeration needs a layer of units with two values; use a solver instead")
        flipped = exact_moments(machine.transposed())
        return ExactMoments(flipped.log_partition, flipped.pairs.mT, flipped.statistics[::-1])
    if not bool(stable(machine).all()):
        raise UsageError(UNSTABLE)
    states = _all_values(hidden, machine.weights)
    visible, hidden = for_several(visible), for_several(hidden)
    fields = machine.visible_fields(states)
    log_weight = visible.log_partition(fields).sum(-1) + hidden.log_weight(states).sum(-1)
    log_partition = torch.logsumexp(log_weight, -1)
    probability = torch.exp(log_weight - log_partition.unsqueeze(-1)).unsqueeze(-1)
    given_states = visible.expected_statistics(fields)
    return ExactMoments(
        log_partition,
        given_states["bias"].mT @ (probability * states),
        (_averages(probability, given_states), _averages(probability, hidden.statistics(states))),
    )


def _averages(probability: Tensor, statistics: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Average statistics (..., states, n) over the states, with probabilities (..., states, 1)."""
    return {name: (probability * value).sum(-2) for name, value in statistics.items()}


def joint_normal(machine: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (...,), mean (..., D + H) and covariance (..., D + H, D + H) of the visible and then the hidden units.

    With V the quadratic parameters and U the biases of both layers, the precision is P = [[V_v, -W], [-Wᵀ, V_h]], and
    the mean is P⁻¹U.

    Raises:
        UsageError: if P is not positive definite.
    """
    bias, quadratic = (joined(machine, (0, 1), name) for name in ("bias", "quadratic"))
    precision = torch.diag_embed(quadratic) - couplings_among(machine, (0, 1))
    factor, failed = torch.linalg.cholesky_ex(precision)
    if bool(failed.any()):
        raise UsageError(UNSTABLE)
    covariance = torch.cholesky_inverse(factor)
    mean = (covariance @ bias.unsqueeze(-1)).squeeze(-1)
    log_root = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_partition = ((bias * mean).sum(-1) + bias.shape[-1] * math.log(2 * math.pi)) / 2 - log_root
    return log_partition, mean, covariance


def _normal(machine: RBM) -> ExactMoments:
    log_partition, mean, covariance = joint_normal(machine)
    second = covariance + mean.unsqueeze(-1) * mean.unsqueeze(-2)
    squares = second.diagonal(dim1=-2, dim2=-1)
    size = machine.visible.size
    return ExactMoments(
        log_partition,
        second[..., :size, size:],
        (
            {"bias": mean[..., :size], "quadratic": -squares[..., :size] / 2},
            {"bias": mean[..., size:], "quadratic": -squares[..., size:] / 2},
        ),
    )


def _all_states(machine: FullyVisible) -> ExactMoments:
    states, log_weight = _weighed(machine)
    log_partition = torch.logsumexp(log_weight, -1)
    probability = torch.exp(log_weight - log_partition.unsqueeze(-1))
    return ExactMoments(
        log_partition,
        (probability.unsqueeze(-2) * states.T) @ states,
        ({"bias": probability @ states}, {"bias": probability.new_zeros(*probability.shape[:-1], 0)}),
    )


def _weighed(machine: FullyVisible) -> tuple[Tensor, Tensor]:
    """All states (states, D), and the log of their unnormalised probabilities, (..., states)."""
    if not _has_two_values(machine.visible):
        raise UsageError("enumeration needs units with two values; use a solver instead")
    states = _all_values(machine.visible, machine.weights)
    return states, machine.visible.parameters["bias"] @ states.T + machine.interaction((states,))


def state_probabilities(machine: FullyVisible) -> tuple[Tensor, Tensor]:
    """All states of a fully visible machine, (2**D, D), and the probability of each, (..., 2**D).

    Raises:
        UsageError: for more than MAX_ENUMERATED units.
    """
    states, log_weight = _weighed(machine)
    return states, torch.softmax(log_weight, -1)


def exact_samples(machine: FullyVisible, count: int, generator: torch.Generator) -> Tensor:
    """Draw independent samples (count, D) of a fully visible machine; raises errors as `state_probabilities`."""
    states, probability = state_probabilities(machine)
    cumulative = probability.cumsum(-1)
    uniform = torch.rand(count, dtype=cumulative.dtype, device=cumulative.device, generator=generator)
    return states[torch.searchsorted(cumulative, uniform * cumulative[-1]).clamp(max=len(states) - 1)]


def log_likelihood(machine: RBM | FullyVisible, images: Tensor) -> Tensor:
    """Exact log p(v) of each image (batch, D), a density where units are real-valued; shape (batch,)."""
    return -machine.free_energy(images) - exact_moments(machine).log_partition


def log_likelihood_gradient(machine: RBM, images: Tensor) -> dict[str, Tensor]:
    """Exact gradient of the mean log-likelihood of the images, named as the machine's parameters."""
    fields, model = machine.hidden_fields(images), exact_moments(machine)
    data = (machine.visible.statistics(images), machine.hidden.expected_statistics(fields))
    gradient = {"weights.0": machine.couplings[0].statistics(images, data[1]["bias"]) - model.pairs}
    for index, (observed, expected) in enumerate(zip(data, model.statistics, strict=True)):
        gradient |= {f"units.{index}.{name}": value.mean(0) - expected[name] for name, value in observed.items()}
    return gradient
