"""Maximum conditional likelihood with the model's expectations from a fixed point (CRBM-BP, sec. 4.1, eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from restore.learning.contract import LearnerState, Pairs, Step
from restore.learning.matched import Matched, verdict
from restore.learning.statistics import conditional, conditional_clamped, difference
from restore.priors import ConditionalRBM
from restore.solvers import BeliefPropagation


@dataclass(frozen=True)
class BeliefPropagationLikelihood(Matched):
    """MLE-BP: expectations and pairwise beliefs of sum-product belief propagation."""

    solver: ClassVar[Literal["sum_product"]] = "sum_product"

    def step(
        self, prior: ConditionalRBM, batch: Pairs, state: LearnerState, generator: torch.Generator, epoch: int
    ) -> Step:
        machine = prior.given(batch.observed)
        settings = self.inference(epoch)
        found = BeliefPropagation("sum", settings.max_iter, settings.tol).solve(machine, pairs=True)
        visible, hidden = found.means
        model = conditional(visible, hidden, batch.observed, found.pairs)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        return Step(difference(data, model), {}, verdict(found))


@dataclass(frozen=True)
class MeanFieldLikelihood(Matched):
    """MLE-MF: expectations of naive mean field, started from the fields of the observed image alone."""

    solver: ClassVar[Literal["mean_field"]] = "mean_field"

    def step(
        self, prior: ConditionalRBM, batch: Pairs, state: LearnerState, generator: torch.Generator, epoch: int
    ) -> Step:
        machine = prior.given(batch.observed)
        found = self.fixed_point(epoch).solve(machine)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        visible, hidden = found.means
        return Step(difference(data, conditional(visible, hidden, batch.observed)), {}, verdict(found))
