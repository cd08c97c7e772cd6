"""Machines of spins, images drawn from them, and what the learners by pseudo-likelihood make of these."""

from __future__ import annotations

import torch
from bslm_covariance import rounds_of, unflattened
from machines import seeded
from oracle import exact_samples
from torch import Tensor
from torch.nn.functional import logsigmoid

from restore.learning.gradients.pseudo_likelihood import Spins
from restore.learning.rules.bslm import PseudoLikelihoodAscent, spins_of
from restore.learning.rules.contract import Round
from restore.priors import FullyVisible


def random_spins(units: int, variance: float = 0.5, seed: int = 0) -> Spins:
    draw = seeded(seed)
    parameters = variance**0.5 * torch.randn(units * (units + 1) // 2, generator=draw, dtype=torch.float64)
    return unflattened(parameters)


def drawn(truth: Spins, count: int, seed: int = 0) -> Tensor:
    return exact_samples(FullyVisible.from_spins(*truth), count, seeded(seed))


def fitted(learner: PseudoLikelihoodAscent, images: Tensor, start: Spins | None = None) -> list[Round]:
    if start is None:
        start = spins_of(learner.begin(images, seeded()))
    return list(rounds_of(learner, images, start))


def log_pseudo_likelihood(machine: FullyVisible, images: Tensor) -> Tensor:
    """Exact log-pseudo-likelihood of each image (batch, D) in {0, 1}; shape (batch,), at most 0."""
    log_odds = machine.inputs(0, (images,)) + machine.visible.parameters["bias"]
    return logsigmoid((2 * images - 1) * log_odds).sum(-1)


def same(units: int, images: int = 60) -> Tensor:
    """Images that are mostly of one colour, so that every pixel tells all others."""
    noise = torch.rand(images, units, generator=seeded(1)) < 0.1
    colour = torch.rand(images, 1, generator=seeded(2)) < 0.5
    return (noise ^ colour).double()
