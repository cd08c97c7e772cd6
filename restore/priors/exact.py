"""Exact answers for small binary machines by enumeration: the oracle every solver and learner is tested against.

The smaller layer of an RBM is enumerated and the larger one summed out in closed form, so the cost is 2**min(D, H)
states; of a fully visible machine all 2**D states are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.fully_visible import FullyVisible
from restore.priors.rbm import RBM
from restore.units import log_one_plus_exp

MAX_ENUMERATED = 20


@dataclass(frozen=True)
class ExactMoments:
    """Expectations under a binary machine; the leading batch dimension is there when the machine's fields have one.

    Attributes:
        log_partition: log Z, shape (...,).
        visible: E[v], shape (..., D).
        hidden: E[h], shape (..., H); H = 0 for a fully visible machine.
        pairs: E[v h^T], shape (..., D, H); for a fully visible machine E[v v^T], shape (..., D, D).
    """

    log_partition: Tensor
    visible: Tensor
    hidden: Tensor
    pairs: Tensor


def binary_states(count: int, like: Tensor) -> Tensor:
    """All 2**count states of `count` binary units, shape (2**count, count), with the type and device of `like`.

    Raises:
        UsageError: for more than MAX_ENUMERATED units.
    """
    if count > MAX_ENUMERATED:
        raise UsageError(
            f"enumeration needs at most {MAX_ENUMERATED} units in the smaller layer, not {count}; use a solver instead"
        )
    codes = torch.arange(2**count, device=like.device)
    return ((codes[:, None] >> torch.arange(count, device=like.device)) & 1).to(like.dtype)


def exact_moments(machine: RBM | FullyVisible) -> ExactMoments:
    """log Z and all moments of a binary machine, exactly.

    Raises:
        UsageError: if every layer has more than MAX_ENUMERATED units.
    """
    if isinstance(machine, FullyVisible):
        return _all_states(machine)
    if machine.hidden.size > machine.visible.size:
        flipped = exact_moments(transposed(machine))
        return ExactMoments(flipped.log_partition, flipped.hidden, flipped.visible, flipped.pairs.mT)
    hidden = binary_states(machine.hidden.size, machine.weights)
    # A batch of machines is enumerated side by side: (batch, 1, n) biases against (states, n) fields.
    visible_bias = machine.visible.parameters["bias"].unsqueeze(-2)
    hidden_bias = machine.hidden.parameters["bias"].unsqueeze(-2)
    log_odds = visible_bias + hidden @ machine.weights.T
    log_weight = log_one_plus_exp(log_odds).sum(-1) + (hidden * hidden_bias).sum(-1)
    log_partition = torch.logsumexp(log_weight, -1)
    probability = torch.exp(log_weight - log_partition.unsqueeze(-1))
    visible_given = torch.sigmoid(log_odds)
    weighted = probability.unsqueeze(-1) * hidden
    return ExactMoments(
        log_partition,
        (probability.unsqueeze(-1) * visible_given).sum(-2),
        weighted.sum(-2),
        visible_given.mT @ weighted,
    )


def _all_states(machine: FullyVisible) -> ExactMoments:
    states, log_weight = _weighed(machine)
    log_partition = torch.logsumexp(log_weight, -1)
    probability = torch.exp(log_weight - log_partition.unsqueeze(-1))
    return ExactMoments(
        log_partition,
        probability @ states,
        probability.new_zeros(*probability.shape[:-1], 0),
        (probability.unsqueeze(-2) * states.T) @ states,
    )


def _weighed(machine: FullyVisible) -> tuple[Tensor, Tensor]:
    """All states (states, D), and the log of the unnormalised probability of each, (..., states)."""
    states = binary_states(machine.visible.size, machine.weights)
    return states, machine.visible.parameters["bias"] @ states.T + machine.interaction(machine.couplings, (states,))


def state_probabilities(machine: FullyVisible) -> tuple[Tensor, Tensor]:
    """All states of a fully visible machine, (2**D, D), and the probability of each, (..., 2**D).

    Raises:
        UsageError: for more than MAX_ENUMERATED units.
    """
    states, log_weight = _weighed(machine)
    return states, torch.softmax(log_weight, -1)


def exact_samples(machine: FullyVisible, count: int, generator: torch.Generator) -> Tensor:
    """Independent samples (count, D) of a fully visible machine; errors as in `state_probabilities`."""
    states, probability = state_probabilities(machine)
    cumulative = probability.cumsum(-1)
    uniform = torch.rand(count, dtype=cumulative.dtype, device=cumulative.device, generator=generator)
    return states[torch.searchsorted(cumulative, uniform * cumulative[-1]).clamp(max=len(states) - 1)]


def transposed(machine: RBM) -> RBM:
    """The same machine with its two layers exchanged."""
    return RBM(machine.layers[::-1], (machine.weights.T,))


def log_likelihood(machine: RBM | FullyVisible, images: Tensor) -> Tensor:
    """Exact log p(v) of each image (batch, D) in {0, 1}; shape (batch,)."""
    return -machine.free_energy(images) - exact_moments(machine).log_partition


def log_likelihood_gradient(machine: RBM, images: Tensor) -> dict[str, Tensor]:
    """Exact gradient of the mean log-likelihood of the images, named as the machine's parameters."""
    hidden = machine.hidden.moments(machine.hidden_fields(images))[0]
    model = exact_moments(machine)
    return {
        "weights.0": images.T @ hidden / len(images) - model.pairs,
        "units.0.bias": images.mean(0) - model.visible,
        "units.1.bias": hidden.mean(0) - model.hidden,
    }
