"""CD-PercLoss: a random search for a state the model prefers to the truth (Mnih, Larochelle & Hinton, 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.conditional_divergence import ConditionalDivergence
from restore.learning.contract import Gradient, Pairs
from restore.learning.statistics import conditional_clamped, difference
from restore.priors import RBM, ConditionalRBM
from restore.solvers.gibbs import gibbs_steps


@dataclass(frozen=True)
class PerceptronLoss(ConditionalDivergence):
    """A Gibbs chain from the logistic regression's prediction; the state of lowest free energy is pushed down.

    The perceptron loss F(truth) - min F is never negative: where no state visited beats the truth, nothing is learnt.

    Attributes:
        steps: length of the search.
        regression: epochs of logistic regression first, whose prediction the search starts from.
        iterations, growth, tol: of the mean field with which the prior will restore.
    """

    steps: int = 10

    def chain_means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator
    ) -> tuple[Gradient, dict[str, Tensor]]:
        machine = prior.given(batch.observed)
        negative = self._preferred(machine, batch.clean, generator)
        data = conditional_clamped(machine, batch.clean, batch.observed)
        gradient = difference(data, conditional_clamped(machine, negative, batch.observed))
        beaten = (negative != batch.clean).any(-1).double().mean()
        return gradient, {"truth_beaten": beaten}

    def _preferred(self, machine: RBM, clean: Tensor, generator: torch.Generator) -> Tensor:
        """The visible state of lowest free energy among the truth and those a chain comes through; (batch, D)."""
        visible = machine.visible.mode(Fields(torch.zeros_like(clean)))
        visited = [clean, visible]
        for _ in range(self.steps):
            visible = gibbs_steps(machine, visible, 1, generator)
            visited.append(visible)
        # The truth comes first, and wins ties.
        lowest = torch.stack([machine.free_energy(state) for state in visited]).argmin(0)
        return torch.stack(visited)[lowest, torch.arange(len(clean), device=clean.device)]
