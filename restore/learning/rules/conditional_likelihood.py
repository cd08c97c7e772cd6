"""Maximum conditional likelihood with the model's expectations from a fixed point (CRBM-BP, sec. 4.1, eq. 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from restore.learning.gradients.matched import Matched, verdict
from restore.learning.gradients.statistics import conditional, conditional_clamped, difference
from restore.learning.rules.contract import Gradient, Pairs
from restore.priors import RBM, ConditionalRBM
from restore.solvers import BeliefPropagation, Solution


@dataclass(frozen=True)
class ConditionalLikelihood(Matched, ABC):
    """The statistics of the clean images minus those that a fixed point expects."""

    @abstractmethod
    def expectations(self, machine: RBM, epoch: int) -> Solution:
        """Solve the machines of a mini-batch, with pairwise beliefs if the method has them."""

    def means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int
    ) -> tuple[Gradient, dict[str, Tensor]]:
        machine = prior.given(batch.observed)
        found = self.expectations(machine, epoch)
        visible, hidden = found.means
        model = conditional(visible, hidden, batch.observed, found.pairs)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        return difference(data, model), verdict(found)


@dataclass(frozen=True)
class BeliefPropagationLikelihood(ConditionalLikelihood):
    """MLE-BP: expectations and pairwise beliefs of sum-product belief propagation."""

    solver: ClassVar[str] = "sum_product"

    def expectations(self, machine: RBM, epoch: int) -> Solution:
        settings = self.inference(epoch)
        return BeliefPropagation("sum", settings.max_iter, settings.tol).solve(machine, pairs=True)


@dataclass(frozen=True)
class MeanFieldLikelihood(ConditionalLikelihood):
    """MLE-MF: expectations of naive mean field, started from the observed image's fields."""

    solver: ClassVar[str] = "mean_field"

    def expectations(self, machine: RBM, epoch: int) -> Solution:
        return self.fixed_point(epoch).solve(machine)
