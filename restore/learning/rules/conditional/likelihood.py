"""Maximum conditional likelihood with the model's expectations from a fixed point (CRBM-BP, sec. 4.1, eq. 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.gradients.matched import Matched, verdict
from restore.learning.gradients.statistics import conditional, conditional_clamped, difference
from restore.learning.recipe.spec import PriorShape, require
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


@dataclass(frozen=True)
class LogisticRegression(Matched):
    """LR: logistic regression on the observed image, by a conditional RBM with an unused hidden unit (CRBM-BP, sec. 6).

    Only Wvx and b are learnt; with W = 0 one iteration of mean field is exact.
    """

    solver: ClassVar[str] = "mean_field"

    iterations: int = field(default=1, init=False)
    growth: int = field(default=0, init=False)

    def check(self, prior: PriorShape) -> None:
        """There is a hidden unit only because every RBM has one."""
        scale = prior.weight_scale
        require(scale == 0, f"[prior] weight_scale must be 0 for logistic regression, not {scale}")
        require(
            not prior.grows,
            '[prior] hidden = "auto" has no meaning for logistic regression, which uses no hidden unit; give 1',
        )

    def means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int
    ) -> tuple[Gradient, dict[str, Tensor]]:
        machine = prior.given(batch.observed)
        predicted, _ = machine.visible.moments(Fields(torch.zeros_like(batch.clean)))
        error = batch.clean - predicted
        gradient = {name: torch.zeros_like(value) for name, value in prior.parameters.items()}
        gradient["units.0.bias"] = error.mean(0)
        gradient["inputs.0"] = error.T @ batch.observed / len(error)
        loss = -machine.visible.log_weight(batch.clean) + machine.visible.log_partition(Fields(torch.zeros_like(error)))
        return gradient, {"loss": loss.sum(-1).double().mean()}
