"""Conditional priors restore with the inference they were trained with; learn by the likelihood (CRBM-BP, sec. 4.1).

If an approximate inference gave a prior's gradient, the prior works best with exactly that inference: the same method
and the same number of iterations (CRBM-BP, sec. 6, observation 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from restore.errors import UsageError, require
from restore.fields import Fields
from restore.learning.gradients.statistics import conditional, conditional_clamped, difference
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import Gradient, LearnerState, LearningRule, Pairs, Step
from restore.priors import RBM, ConditionalRBM
from restore.solvers import BeliefPropagation, FixedPoint, Solution, solver_of
from restore.status import Status
from restore.zoo.inference import Inference

# A gradient, and numbers for the log; a vector is reported as its root mean square.
Means: TypeAlias = tuple[Gradient, dict[str, Tensor]]

# The monitor that shows when a solver no longer converges.
CONVERGED_MONITOR = "converged"


@dataclass(frozen=True)
class Matched(LearningRule, ABC):
    """Settings of the inference with which a conditional prior is trained, and later restores.

    Couplings grow during learning and inference needs more iterations (CRBM-BP, sec. 6, observation 1): the limit is
    `iterations` in the first epoch, and `growth` more in each later one.
    """

    solver: ClassVar[str]
    # An image has converged when no mean moves by more than this in one iteration; pixels need no more.
    tol: float = field(default=1e-3, init=False)

    iterations: int = 7
    growth: int = 1

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.growth < 0:
            raise UsageError(
                f"iterations must be at least 1 and growth not negative, not {self.iterations} and {self.growth}"
            )

    def inference(self, epoch: int) -> Inference:
        limit = self.iterations + self.growth * epoch
        return Inference(solver=self.solver, max_iter=limit, tol=self.tol, damping=0.0, modes=0, starts=0)

    def fixed_point(self, epoch: int) -> FixedPoint:
        return solver_of(self.inference(epoch))

    def init(self, prior: ConditionalRBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        return {}

    def step(
        self, prior: ConditionalRBM, batch: Pairs, state: LearnerState, generator: torch.Generator, epoch: int
    ) -> Step:
        gradient, monitors = self.means(prior, batch, generator, epoch)
        scalars = {name: value.square().mean().sqrt() if value.dim() else value for name, value in monitors.items()}
        return Step(gradient, {}, scalars)

    @abstractmethod
    def means(self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int) -> Means:
        """Gradient and monitors as means over some of the images."""


def verdict(solution: Solution) -> dict[str, Tensor]:
    """The share of images for which the solver converged, and the mean number of iterations."""
    converged = (solution.status == Status.CONVERGED).double().mean()
    return {CONVERGED_MONITOR: converged, "iterations": solution.iterations.double().mean()}


@dataclass(frozen=True)
class ConditionalLikelihood(Matched):
    """The statistics of the clean images minus those that a fixed point expects."""

    def expectations(self, machine: RBM, epoch: int) -> Solution:
        """Solve the machines of a mini-batch, with pairwise beliefs if the method has them."""
        return self.fixed_point(epoch).solve(machine)

    def means(self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int) -> Means:
        machine = prior.given(batch.observed)
        solution = self.expectations(machine, epoch)
        visible, hidden = solution.means
        model = conditional(visible, hidden, batch.observed, solution.pairs)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        return difference(data, model), verdict(solution)


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


@dataclass(frozen=True)
class LogisticRegression(Matched):
    """LR: logistic regression on the observed image, by a conditional RBM with an unused hidden unit (CRBM-BP, sec. 6).

    Only Wvx and b are learnt; with W = 0 one iteration of mean field is exact.
    """

    solver: ClassVar[str] = "mean_field"

    iterations: int = field(default=1, init=False)
    growth: int = field(default=0, init=False)

    def check(self, prior: PriorShape) -> None:
        scale = prior.weight_scale
        require(scale == 0, f"[prior] weight_scale must be 0 for logistic regression, not {scale}")
        require(
            not prior.grows,
            '[prior] hidden = "auto" has no meaning for logistic regression, which uses no hidden unit; give 1',
        )

    def means(self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int) -> Means:
        machine = prior.given(batch.observed)
        predicted, _ = machine.visible.moments(Fields(torch.zeros_like(batch.clean)))
        error = batch.clean - predicted
        gradient = {name: torch.zeros_like(value) for name, value in prior.parameters.items()}
        gradient["units.0.bias"] = error.mean(0)
        gradient["inputs.0"] = error.T @ batch.observed / len(error)
        loss = -machine.visible.log_weight(batch.clean) + machine.visible.log_partition(Fields(torch.zeros_like(error)))
        return gradient, {"loss": loss.sum(-1).double().mean()}
