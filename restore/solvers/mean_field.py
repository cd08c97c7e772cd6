"""Naive mean field: every unit sees only the means, or the likeliest values, of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.solvers.layered_map import LayeredMap
from restore.solvers.loop import Change, State, average_change, damped
from restore.units import Units
from restore.units.two_valued import TwoValuedUnits


@dataclass(frozen=True)
class MeanField(LayeredMap):
    """Naive mean field, a = f_a(sum of W a over neighbours). At a fixed point it bounds log Z from below.

    It is TAP (Alg. 1) with A = 0.

    >>> from restore.priors import RBM
    >>> machine = RBM.binary(torch.tensor([[1.0, -0.5], [0.5, 1.0]]), torch.zeros(2), torch.zeros(2))
    >>> round(MeanField().solve(machine).log_partition.item(), 2)  # 3.54 by enumeration
    3.48
    """

    def inputs(
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
            own.append(self.entropy(layer, field, means[index]).sum(-1))
        return torch.stack(own).sum(0) + machine.interaction(means)

    def entropy(self, units: Units, field: Tensor, means: Tensor) -> Tensor:
        """Entropy plus mean log-weight of each unit, its own part of the bound; (..., n)."""
        return units.log_partition(Fields(field)) - field * means


@dataclass(frozen=True)
class HardMeanField(MeanField):
    """Mean field with points for real-valued units: these take their most probable value, not their mean.

    A fixed point maximises the entropy of the two-valued units plus the expected exponent, in each layer given the
    others. Variational methods call this a point estimate of what is hidden (hard EM; Neal & Hinton, 1998).
    With rectified hidden units each pixel gets the energy of a dense associative memory (Krotov & Hopfield, 2016).

    >>> from restore.priors import RBM
    >>> from restore.units import Bernoulli, Rectified
    >>> pixels, feature = Bernoulli(torch.zeros(2)), Rectified(torch.zeros(1), torch.ones(1))
    >>> likes_ink = RBM((pixels, feature), (torch.ones(2, 1),))
    >>> found = HardMeanField().solve(likes_ink)
    >>> [round(mean, 3) for mean in found.means[1][0].tolist()] == [round(float(found.means[0].sum()), 3)]
    True
    """

    # Points are unbounded and follow the pixels, so only the pixels are watched.
    def watched(self, machine: BoltzmannMachine) -> Change:
        points = not all(isinstance(layer, TwoValuedUnits) for layer in machine.layers)
        return average_change if points else super().watched(machine)

    # The state holds only means: no step reads variances, and they would cost a third of its time.
    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        means = [start]
        for units, coupling in zip(machine.layers[1:], machine.couplings, strict=False):
            means.append(value_of(units, Fields(coupling.up(means[-1]))))
        return tuple(means)

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        means, depth = list(state), len(state)
        for layer in (*range(1, depth, 2), *range(0, depth, 2)):
            new = value_of(machine.layers[layer], self.fields(machine, layer, means, []))
            (means[layer],) = damped((new,), (means[layer],), self.damping)
        return tuple(means)

    def moments(self, machine: BoltzmannMachine, state: State) -> tuple[list[Tensor], list[Tensor]]:
        return list(state), [_variance(units, mean) for units, mean in zip(machine.layers, state, strict=True)]

    def entropy(self, units: Units, field: Tensor, means: Tensor) -> Tensor:
        if isinstance(units, TwoValuedUnits):
            return super().entropy(units, field, means)
        return units.log_weight(means)


def value_of(units: Units, fields: Fields) -> Tensor:
    return units.mean(fields) if isinstance(units, TwoValuedUnits) else units.mode(fields)


def _variance(units: Units, mean: Tensor) -> Tensor:
    """Of units with two values the mean tells it; a point has none."""
    low, high = units.support
    return (high - mean) * (mean - low) if isinstance(units, TwoValuedUnits) else torch.zeros_like(mean)
