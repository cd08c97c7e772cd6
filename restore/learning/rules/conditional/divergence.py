"""Contrastive divergence for conditional RBMs: the model's statistics come from a short Gibbs chain per image.

Chains cannot persist, because every observed image has its own machine (CRBM-BP, sec. 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from restore.errors import require
from restore.fields import Fields
from restore.learning.gradients.statistics import conditional_clamped, difference
from restore.learning.rules.conditional.likelihood import LogisticRegression, Matched, Means
from restore.learning.rules.contract import Pairs
from restore.priors import RBM, ConditionalRBM
from restore.solvers.samplers.gibbs import gibbs_steps


@dataclass(frozen=True)
class ConditionalDivergence(Matched):
    """CD-k: a chain of k steps from the clean image. The prior restores by mean field, as in the paper.

    The first epochs, as many as `regression`, are logistic regression, as a start for Wvx and b: a chain from the clean
    image mostly stays there, and so teaches them little. Settings of `Matched` are for the mean field.
    """

    solver: ClassVar[str] = "mean_field"

    steps: int = 1
    regression: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.steps >= 1, f"steps must be at least 1, not {self.steps}")
        require(self.regression >= 0, f"regression must not be negative, not {self.regression}")

    def means(self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator, epoch: int) -> Means:
        if epoch < self.regression:
            return LogisticRegression().means(prior, batch, generator, epoch)
        machine = prior.given(batch.observed)
        negative, monitors = self.negative(machine, batch.clean, generator)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        gradient = difference(data, conditional_clamped(machine, negative, batch.observed))
        return gradient, monitors or {"pixel_mean_gap": gradient["units.0.bias"]}

    def negative(self, machine: RBM, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        """The states (batch, D) to push down, and their own monitors, if any."""
        return gibbs_steps(machine, clean, self.steps, generator), {}


@dataclass(frozen=True)
class PerceptronLoss(ConditionalDivergence):
    """CD-PercLoss: search at random for a state that the model prefers to the truth (Mnih, Larochelle & Hinton, 2011).

    A Gibbs chain of some steps starts at a sample of the logistic prediction; its state of lowest free energy is pushed
    down. The start is no mode, whose free energy is many nats below all that a chain visits: it would always be found.
    For the same reason the truth does not compete with the chain's states, as in max(0, F(truth) - min F): they seldom
    beat it.
    """

    steps: int = 10

    def negative(self, machine: RBM, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        visible = machine.visible.sample(Fields(torch.zeros_like(clean)), generator)
        visited = [visible]
        for _ in range(self.steps):
            visible = gibbs_steps(machine, visible, 1, generator)
            visited.append(visible)
        energies = torch.stack([machine.free_energy(state) for state in visited])
        lowest, where = energies.min(0)
        negative = torch.stack(visited)[where, torch.arange(len(where), device=where.device)]
        beaten = {"truth_beaten": lowest < machine.free_energy(clean), "start_beaten": lowest < energies[0]}
        return negative, {name: share.double().mean() for name, share in beaten.items()}
