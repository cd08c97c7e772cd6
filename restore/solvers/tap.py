"""The Thouless-Anderson-Palmer (TAP) solver: mean field, corrected for the effect of each unit on itself.

TAP machine, Alg. 1 (with the signs of exp(B x - A x² / 2) throughout) and the free energy of sec. V.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.solvers.layered_map import LayeredMap
from restore.solvers.loop import State


def cavity_fields(machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]) -> Fields:
    """A = -(W∘W)ᵀ c and B = A∘a + Wᵀ a from the neighbours' means a and variances c (Alg. 1); A is never positive."""
    quadratic = -machine.squared_inputs(layer, variances)
    return Fields(torch.addcmul(machine.inputs(layer, means), quadratic, means[layer]), quadratic)


@dataclass(frozen=True)
class TAP(LayeredMap):
    """Second-order TAP, the solver of most priors.

    Its log Z is wrong at third order in the weights, that of naive mean field at second.

    >>> from restore.priors import RBM
    >>> machine = RBM.binary(torch.tensor([[1.0, -0.5], [0.5, 1.0]]), torch.zeros(2), torch.zeros(2))
    >>> [round(value, 2) for value in TAP().solve(machine).means[0][0].tolist()]  # as by enumeration
    [0.6, 0.71]
    """

    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        # Computed here once; in a graph each iteration would compute it.
        _ = machine.squared_couplings
        return super().init(machine, start)

    def inputs(
        self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        return machine.inputs(layer, means), machine.squared_inputs(layer, variances)

    def fields(self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]) -> Fields:
        return cavity_fields(machine, layer, means, variances)

    def log_partition(self, machine: BoltzmannMachine, means: list[Tensor], variances: list[Tensor]) -> Tensor:
        # In double precision: evidence adds fields of up to ±1000 per pixel, and a difference of order one between
        # their sums decides between two solutions.
        machine = machine.to(torch.float64)
        means, variances = [mean.double() for mean in means], [variance.double() for variance in variances]
        own = []
        for index, layer in enumerate(machine.layers):
            fields = cavity_fields(machine, index, means, variances)
            mean, variance = means[index], variances[index]
            reaction = fields.quadratic * (mean * mean + variance) / 2
            own.append((layer.log_partition(fields) - fields.linear * mean + reaction).sum(-1))
        pairs = machine.interaction(means)
        return torch.stack(own).sum(0) + pairs + machine.squared_interaction(variances) / 2
