"""What learners of conditional priors share: they restore with the inference they were trained with.

If an approximate inference gave a prior's gradient, the prior works best with exactly that inference: the same method
and the same number of iterations (CRBM-BP, sec. 6, observation 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.learning.rules.contract import Gradient, LearnerState, Pairs, Step
from restore.learning.rules.rule import LearningRule
from restore.learning.run.parallel import Share, summed
from restore.marginals import Status
from restore.priors import ConditionalRBM
from restore.solvers import FixedPoint, Solution, solver_of
from restore.zoo.inference import Inference

# The monitor that shows when a solver no longer converges.
CONVERGED = "converged"


@dataclass(frozen=True)
class Matched(LearningRule, ABC):
    """Settings of the inference with which a conditional prior is trained, and later restores.

    Couplings grow during learning and inference needs more iterations, so the limit grows with the epochs (CRBM-BP,
    sec. 6, observation 1).

    Attributes:
        iterations: iteration limit in the first epoch.
        growth: how much the limit grows per epoch.
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
        images = Share.of(len(batch.clean))
        with images.draws():
            gradient, monitors = self.means(prior, Pairs(*map(images.own, batch)), generator, epoch)
        gradient, monitors = (summed(images.part(values)) for values in (gradient, monitors))
        told = {name: value.square().mean().sqrt() if value.dim() else value for name, value in monitors.items()}
        return Step(gradient, {}, told)

    @abstractmethod
    def means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int
    ) -> tuple[Gradient, dict[str, Tensor]]:
        """Gradient and monitors of some of the images, all as means over these.

        A vector-valued monitor is reported as its root mean square.
        """


def verdict(found: Solution) -> dict[str, Tensor]:
    """The share of images for which the solver converged, and the mean number of iterations."""
    converged = (found.status == Status.CONVERGED).double().mean()
    return {CONVERGED: converged, "iterations": found.iterations.double().mean()}
