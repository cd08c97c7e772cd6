"""Hard mean field in sweeps that go up through the layers and down again."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.solvers.loop import State, damped
from restore.solvers.mean_field import HardMeanField, value_of


@dataclass(frozen=True)
class UpAndDown(HardMeanField):
    """Hard mean field in the order of layers 1, 2, ... to the top, back to 1, then the image.

    One sweep carries the image to every layer, and all answers back. Each coupling is used once up and once down:
    the field from a neighbour that has not changed is kept. Only the image is damped, as all layers follow it.

    The state holds the means of all layers, then the fields on layers 0, 1, ... from above.

    >>> import torch
    >>> from restore.priors import LayeredPrior
    >>> from restore.units import Bernoulli
    >>> layers = tuple(Bernoulli(torch.zeros(size)) for size in (3, 2, 2))
    >>> machine = LayeredPrior(layers, (torch.ones(3, 2), torch.ones(2, 2)))
    >>> one, other = UpAndDown(tol=1e-6).solve(machine), HardMeanField(tol=1e-6).solve(machine)
    >>> torch.allclose(one.means[0], other.means[0], atol=1e-4), bool(one.iterations < other.iterations)
    (True, True)
    """

    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        if len(machine.layers) < 2:
            raise UsageError("up_and_down is for machines of several layers; take hard_mean_field")
        # Before the first sweep fields from above are 0. A graph takes no tensor twice.
        empty = (start.new_zeros(start.shape[0], layer.size) for layer in (*machine.layers[1:], *machine.layers[:-1]))
        return (start, *empty)

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        top = len(machine.layers) - 1
        means, above = list(state[: top + 1]), list(state[top + 1 :])
        below: list[Tensor] = []
        for layer in range(1, top + 1):
            below.append(machine.couplings[layer - 1].up(means[layer - 1]))
            field = below[-1] if layer == top else below[-1] + above[layer]
            means[layer] = value_of(machine.layers[layer], Fields(field))
        for layer in range(top - 1, 0, -1):
            above[layer] = machine.couplings[layer].down(means[layer + 1])
            means[layer] = value_of(machine.layers[layer], Fields(below[layer - 1] + above[layer]))
        above[0] = machine.couplings[0].down(means[1])
        (means[0],) = damped((value_of(machine.layers[0], Fields(above[0])),), (means[0],), self.damping)
        return (*means, *above)

    def moments(self, machine: BoltzmannMachine, state: State) -> tuple[list[Tensor], list[Tensor]]:
        return super().moments(machine, state[: len(machine.layers)])

    def fields_of_image(self, machine: BoltzmannMachine, state: State) -> Fields:
        return Fields(state[len(machine.layers)])
