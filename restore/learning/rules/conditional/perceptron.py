"""CD-PercLoss: search at random for a state that the model prefers to the truth (Mnih, Larochelle & Hinton, 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.learning.gradients.statistics import conditional_clamped, difference
from restore.learning.rules.conditional.divergence import ConditionalDivergence
from restore.learning.rules.contract import Gradient, Pairs
from restore.priors import ConditionalRBM
from restore.solvers.samplers.gibbs import gibbs_steps


@dataclass(frozen=True)
class PerceptronLoss(ConditionalDivergence):
    """A Gibbs chain starts at a sample of the logistic prediction; its state of lowest free energy is pushed down.

    The start is a sample, not the mode: the mode's free energy is many nats below all that a chain visits, and it would
    always be found. For the same reason the truth does not compete with the chain's states, as in
    max(0, F(truth) - min F): they seldom beat it, and next to nothing would be learnt.

    Attributes:
        steps: length of the search.
        regression: epochs of logistic regression first. It teaches b and Wvx, from which the search starts, to predict
            the image without hidden units.
        iterations, growth: for the mean field with which the prior will restore.
    """

    steps: int = 10

    def chain_means(
        self, prior: ConditionalRBM, batch: Pairs, generator: torch.Generator
    ) -> tuple[Gradient, dict[str, Tensor]]:
        machine = prior.given(batch.observed)
        visible = machine.visible.sample(Fields(torch.zeros_like(batch.clean)), generator)
        visited = [visible]
        for _ in range(self.steps):
            visible = gibbs_steps(machine, visible, 1, generator)
            visited.append(visible)
        energies = torch.stack([machine.free_energy(state) for state in visited])
        lowest, where = energies.min(0)
        negative = torch.stack(visited)[where, torch.arange(len(where), device=where.device)]
        data = conditional_clamped(machine, batch.clean, batch.observed)
        gradient = difference(data, conditional_clamped(machine, negative, batch.observed))
        beaten = {"truth_beaten": lowest < machine.free_energy(batch.clean), "start_beaten": lowest < energies[0]}
        return gradient, {name: share.double().mean() for name, share in beaten.items()}
