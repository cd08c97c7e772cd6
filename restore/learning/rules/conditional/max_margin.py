"""Max-margin learning of conditional RBMs (CRBM-BP, sec. 4.2).

The state that the model prefers to the truth, when every wrong pixel earns a reward of one (Hamming loss), is made less
probable, and the truth more probable. For a truth v the reward adds 1 - 2 v to the visible log-odds, so this state is
found by inference in a tilted machine.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.gradients.statistics import conditional, conditional_clamped, difference
from restore.learning.rules.conditional.likelihood import Matched, Means, verdict
from restore.learning.rules.contract import Gradient, Pairs
from restore.priors import RBM, ConditionalRBM
from restore.solvers import Solution


def loss_augmented(machine: RBM, clean: Tensor) -> RBM:
    """The machine whose log-probability is increased by the number of pixels that differ from the truth."""
    return machine.tilt(Fields(1 - 2 * clean))


def states(solution: Solution) -> tuple[Tensor, ...]:
    return tuple((mean > 0.5).to(mean.dtype) for mean in solution.means)


def loss(solution: Solution, clean: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """Monitor: the objective of eq. 6, given the log-probability of the truth; negative if inference failed.

    The tilt of `loss_augmented` is the Hamming loss minus its value at v = 0, the number of white pixels.
    """
    return {"margin_loss": (solution.log_partition + clean.sum(-1) - truth).double().mean()}


@dataclass(frozen=True)
class MaxMargin(Matched):
    """Base of both losses: the state that is preferred to the truth, and the difference of the two."""

    def means(self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int) -> Means:
        machine = prior.given(batch.observed)
        solution = self.fixed_point(epoch).solve(loss_augmented(machine, batch.clean))
        model, data, truth = self.sides(machine, states(solution), batch)
        return difference(data, model), verdict(solution) | loss(solution, batch.clean, truth)

    @abstractmethod
    def sides(self, machine: RBM, preferred: tuple[Tensor, ...], batch: Pairs) -> tuple[Gradient, Gradient, Tensor]:
        """The statistics of the preferred state and of the truth, and the truth's log-probability up to log Z."""


@dataclass(frozen=True)
class MarginalMaxMargin(MaxMargin):
    """MSSVM: hidden units are summed out on both sides (eq. 7); mixed-product finds the state."""

    solver: ClassVar[str] = "mixed_product"

    def sides(self, machine: RBM, preferred: tuple[Tensor, ...], batch: Pairs) -> tuple[Gradient, Gradient, Tensor]:
        model = conditional_clamped(machine, preferred[0], batch.observed)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        return model, data, -machine.free_energy(batch.clean)


@dataclass(frozen=True)
class LatentMaxMargin(MaxMargin):
    """LSSVM: hidden units are maximised on both sides; max-product finds the state."""

    solver: ClassVar[str] = "max_product"

    def sides(self, machine: RBM, preferred: tuple[Tensor, ...], batch: Pairs) -> tuple[Gradient, Gradient, Tensor]:
        visible, hidden = preferred
        model = conditional(visible, hidden, batch.observed)
        answer = machine.hidden.mode(machine.hidden_fields(batch.clean))
        data = conditional(batch.clean, answer, batch.observed)
        return model, data, -machine.energy((batch.clean, answer))
