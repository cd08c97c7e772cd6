"""Exact answers for small binary RBMs by enumeration: the oracle every solver and learner is tested against.

The smaller layer is enumerated, the larger one summed out in closed form, so the cost is 2**min(D, H) states.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.rbm import RBM
from restore.units import log_one_plus_exp

MAX_ENUMERATED = 20


@dataclass(frozen=True)
class ExactMoments:
    """Expectations under a binary RBM; the leading batch dimension is there when the machine's fields have one.

    Attributes:
        log_partition: log Z, shape (...,).
        visible: E[v], shape (..., D).
        hidden: E[h], shape (..., H).
        pairs: E[v h^T], shape (..., D, H).
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


def exact_moments(machine: RBM) -> ExactMoments:
    """log Z and all moments of a binary RBM, exactly.

    Raises:
        UsageError: if both layers have more than MAX_ENUMERATED units.
    """
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


def transposed(machine: RBM) -> RBM:
    """The same machine with its two layers exchanged."""
    return RBM(machine.layers[::-1], (machine.weights.T,))


def log_likelihood(machine: RBM, images: Tensor) -> Tensor:
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
