"""Machines of spins, images drawn from them, and what the learners by pseudo-likelihood make of these."""

from __future__ import annotations

import torch
from bslm_covariance import rounds_of, unflattened
from machines import seeded
from torch import Tensor

from restore.learning.gradients.pseudo_likelihood import Spins
from restore.learning.rules.bslm import PseudoLikelihoodAscent, spins_of
from restore.learning.rules.contract import Round
from restore.priors import FullyVisible
from restore.priors.exact import exact_samples


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


def same(units: int, images: int = 60) -> Tensor:
    """Images that are mostly of one colour, so that every pixel tells all others."""
    noise = torch.rand(images, units, generator=seeded(1)) < 0.1
    colour = torch.rand(images, 1, generator=seeded(2)) < 0.5
    return (noise ^ colour).double()
