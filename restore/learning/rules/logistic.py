"""Logistic regression of every clean pixel on the observed image: a conditional RBM whose hidden unit is unused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.gradients.matched import Matched
from restore.learning.recipes.tables import PriorShape, require
from restore.learning.rules.contract import Gradient, Pairs
from restore.priors import ConditionalRBM


@dataclass(frozen=True)
class LogisticRegression(Matched):
    """LR: only Wvx and b are learnt (CRBM-BP, sec. 6); with W = 0 one iteration of mean field is exact."""

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
