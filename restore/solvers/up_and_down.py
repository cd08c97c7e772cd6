"""Hard mean field in sweeps that go up through the layers and down again."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.solvers.loop import State, damped
from restore.solvers.mean_field import HardMeanField, value_of
from restore.tracing import tracing
from restore.units import Units


@dataclass(frozen=True)
class UpAndDown(HardMeanField):
    """Hard mean field in the order of layers 1, 2, ... to the top, back to 1, then the image.

    One sweep carries the image to every layer, and all answers back. Each coupling is used once up and once down:
    the field from a neighbour that has not changed is kept. Only the image is damped, as all layers follow it.

    The state holds the means of the image, then the fields on layers 0, 1, ... from above: hidden means follow from it.

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
        # Before the first sweep fields from above are 0. A graph takes no tensor twice; where it makes the first sweep
        # before its loop, one number stands for all places.
        one = tracing() and machine.couplings[0].any_size
        return (start, *(start.new_zeros(start.shape[0], 1 if one else layer.size) for layer in machine.layers[:-1]))

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        layers, means = _upwards(machine, state)
        above = list(state[1:])
        mean = means[-1]
        for layer in reversed(range(len(above))):
            above[layer] = machine.couplings[layer].down(mean)
            mean = value_of(layers[layer], Fields(above[layer]))
        (mean,) = damped((mean,), (state[0],), self.damping)
        return (mean, *above)

    def moments(self, machine: BoltzmannMachine, state: State) -> tuple[list[Tensor], list[Tensor]]:
        return super().moments(machine, (state[0], *_upwards(machine, state)[1]))

    def fields_of_image(self, machine: BoltzmannMachine, state: State) -> Fields:
        return Fields(state[1])


def _upwards(machine: BoltzmannMachine, state: State) -> tuple[list[Units], list[Tensor]]:
    """From the image up: the layers but the highest, each under the field from below, and the means of hidden ones."""
    mean, *above = state
    layers = [machine.layers[0]]
    means = list[Tensor]()
    for units, coupling, field in zip(machine.layers[1:], machine.couplings, above[1:], strict=False):
        layers.append(units.tilt(Fields(coupling.up(mean))))
        mean = value_of(layers[-1], Fields(field))
        means.append(mean)
    means.append(value_of(machine.layers[-1], Fields(machine.couplings[-1].up(mean))))
    return layers, means
