"""Contrastive divergence for conditional RBMs: the model's statistics come from a short Gibbs chain per image.

Chains cannot persist, because every observed image has its own machine (CRBM-BP, sec. 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.learning.gradients.matched import Matched
from restore.learning.gradients.statistics import conditional_clamped, difference
from restore.learning.rules.conditional.likelihood import LogisticRegression
from restore.learning.rules.contract import Gradient, Pairs
from restore.priors import ConditionalRBM
from restore.solvers.samplers.gibbs import gibbs_steps


@dataclass(frozen=True)
class ConditionalDivergence(Matched):
    """CD-k: a chain of k steps from the clean image. The prior restores by mean field, as in the paper.

    Attributes:
        steps: Gibbs sweeps per mini-batch (k).
        regression: epochs of logistic regression first, as a start for Wvx and b: a chain from the clean image mostly
            stays there, and so teaches them little.
        iterations, growth: for the mean field with which the prior will restore.
    """

    solver: ClassVar[str] = "mean_field"

    steps: int = 1
    regression: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1:
            raise UsageError(f"steps must be at least 1, not {self.steps}")
        if self.regression < 0:
            raise UsageError(f"regression must not be negative, not {self.regression}")

    def means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int
    ) -> tuple[Gradient, dict[str, Tensor]]:
        if epoch < self.regression:
            return LogisticRegression().means(prior, batch, generator, epoch)
        return self.chain_means(prior, batch, generator)

    def chain_means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator
    ) -> tuple[Gradient, dict[str, Tensor]]:
        """As `means`, after the epochs of logistic regression."""
        machine = prior.given(batch.observed)
        negative = gibbs_steps(machine, batch.clean, self.steps, generator)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        gradient = difference(data, conditional_clamped(machine, negative, batch.observed))
        return gradient, {"pixel_mean_gap": gradient["units.0.bias"]}
