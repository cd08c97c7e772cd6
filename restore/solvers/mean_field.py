"""Naive mean field: every unit sees only the means of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.solvers.layered_map import LayeredMap


@dataclass(frozen=True)
class MeanField(LayeredMap):
    """Naive mean field, a = f_a(sum of W a over neighbours). At a fixed point it bounds log Z from below.

    It is TAP (Alg. 1) with A = 0.

    >>> from restore.priors import RBM
    >>> from restore.priors.exact import exact_moments
    >>> machine = RBM.binary(torch.tensor([[1.0, -0.5], [0.5, 1.0]]), torch.zeros(2), torch.zeros(2))
    >>> found, exact = MeanField().solve(machine), exact_moments(machine)
    >>> round(found.log_partition.item(), 2), round(exact.log_partition.item(), 2)
    (3.48, 3.54)
    """

    def heard(
        self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]
    ) -> tuple[Tensor, None]:
        return machine.inputs(layer, means), None

    def fields(self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]) -> Fields:
        return Fields(machine.inputs(layer, means))

    def log_partition(self, machine: BoltzmannMachine, means: list[Tensor], variances: list[Tensor]) -> Tensor:
        machine, means = machine.to(torch.float64), [mean.double() for mean in means]
        own = []
        for index, layer in enumerate(machine.layers):
            field = machine.inputs(index, means)
            own.append((layer.log_partition(Fields(field)) - field * means[index]).sum(-1))
        return torch.stack(own).sum(0) + machine.interaction(means)
