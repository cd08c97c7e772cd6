"""Relaxed belief propagation: belief propagation with means and variances as messages, for units of any type.

TAP machine, appendix B. Each message is a mean and a variance. Without what came over the edge to j, unit i is under

    B_{i->j} = Σ_{l != j} W_il a_{l->i},   A_{i->j} = -Σ_{l != j} W_il² c_{l->i}

and sends its mean a_{i->j} and variance c_{i->j} on (eqs. 57-62, with the signs of exp(B x - A x² / 2)). For Gaussian
neighbours this is exact. For others the third and higher cumulants are left out, so that errors are of third order in
the weights, as in TAP. If every single weight is small, this method becomes TAP.

Layers with even numbers and layers with odd ones answer each other in turn, and every edge joins one of each. So the
state only holds the messages of the even layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from restore.couplings import Coupling
from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import BoltzmannMachine, LayeredPrior
from restore.solvers.heavy_map import HeavyMap
from restore.solvers.layered_map import mean_field_state
from restore.solvers.loop import State, damped
from restore.solvers.solution import Solution
from restore.units.contract import for_several

# Arrays of messages per image.
RELAXED_ARRAYS = 32


def edges_of(machine: LayeredPrior, layer: int) -> list[int]:
    """The couplings that join a layer to the one below and the one above it, if there are any."""
    return [index for index in (layer - 1, layer) if 0 <= index < len(machine.couplings)]


def turned(values: Tensor, index: int, layer: int) -> Tensor:
    """Transpose values per edge, (..., lower units, upper units), so that the units of the layer come last; or back."""
    return values.mT if index == layer else values


def fields_of(machine: LayeredPrior, layer: int, messages: State) -> tuple[Fields, list[Fields]]:
    """The field on each unit of a layer, (batch, n); and per coupling the fields without one neighbour.

    Args:
        machine: the machine under evidence.
        layer: number of the layer.
        messages: what its neighbours have sent: means per coupling, (batch, lower units, upper units), then variances.

    Returns:
        The fields, and the cavity fields, (batch, neighbours, n), in the order of `edges_of`.
    """
    means, variances = messages[: len(machine.couplings)], messages[len(machine.couplings) :]
    edges = edges_of(machine, layer)
    linear = [turned(machine.couplings[index].matrix * means[index], index, layer) for index in edges]
    quadratic = [turned(-machine.squared_couplings[index].matrix * variances[index], index, layer) for index in edges]
    total = Fields(*(torch.stack([part.sum(-2) for part in parts]).sum(0) for parts in (linear, quadratic)))
    return total, [
        Fields(total.linear.unsqueeze(-2) - one, total.quadratic.unsqueeze(-2) - other)
        for one, other in zip(linear, quadratic, strict=True)
    ]


def answers(machine: LayeredPrior, layers: range, received: State) -> tuple[dict[int, tuple[Tensor, Tensor]], State]:
    """Mean and variance of each unit in some layers, and the messages that these layers send, as in `fields_of`.

    Args:
        machine: the machine under evidence.
        layers: the even layers, or the odd ones.
        received: the messages of the others.
    """
    marginals: dict[int, tuple[Tensor, Tensor]] = {}
    sent = list(received)
    for layer in layers:
        units = machine.layers[layer]
        total, cavities = fields_of(machine, layer, received)
        marginals[layer] = units.moments(total)
        for index, cavity in zip(edges_of(machine, layer), cavities, strict=True):
            mean, variance = for_several(units).moments(cavity)
            sent[index], sent[index + len(machine.couplings)] = (turned(v, index, layer) for v in (mean, variance))
    return marginals, tuple(sent)


class RelaxedBeliefPropagation(HeavyMap[LayeredPrior]):
    """Belief propagation with means and variances as messages, for units of any type in two or more layers.

    Messages of even layers are damped.

    >>> from restore.priors import RBM
    >>> from restore.units import Gaussian
    >>> layers = Gaussian(torch.ones(2), torch.ones(2)), Gaussian(torch.zeros(1), torch.ones(1))
    >>> machine = RBM(layers, (torch.full((2, 1), 0.5),))
    >>> [round(value, 3) for value in RelaxedBeliefPropagation(damping=0).solve(machine).means[0][0].tolist()]
    [2.0, 2.0]
    """

    name = "relaxed belief propagation"

    def init(self, machine: LayeredPrior, start: Tensor) -> State:
        """The state that starts from visible means (batch, D): means and variances of all layers, then messages.

        The first message of a unit is its mean-field state; the image counts as certain, like data.
        """
        # Computed here once; in a graph each iteration would compute it.
        _ = machine.squared_couplings
        moments = mean_field_state(machine, start)
        depth = len(machine.layers)
        messages = [
            _spread(kind[index + index % 2], coupling, lower=index % 2 == 0)
            for kind in (moments[:depth], moments[depth:])
            for index, coupling in enumerate(machine.couplings)
        ]
        return (*moments, *messages)

    def step(self, machine: LayeredPrior, state: State) -> State:
        depth = len(machine.layers)
        old = state[2 * depth :]
        odd, replies = answers(machine, range(1, depth, 2), _per_edge(machine, old))
        even, sent = answers(machine, range(0, depth, 2), replies)
        marginals = [(odd | even)[layer] for layer in range(depth)]
        means, variances = zip(*marginals, strict=True)
        return (*means, *variances, *damped(tuple(messages.flatten(1) for messages in sent), old, self.damping))

    def numbers(self, machine: LayeredPrior) -> int:
        """Mostly messages for log Z, which is computed in double precision."""
        return RELAXED_ARRAYS * sum(math.prod(coupling.sizes) for coupling in machine.couplings)

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None) -> Solution:
        """As in `HeavyMap`; also raises UsageError if the machine has no layers to alternate."""
        if not isinstance(machine, LayeredPrior):
            raise UsageError(f"{self.name} is for machines in layers, not for {type(machine).__name__}")
        return super().solve(machine, start)

    def log_partition(self, machine: LayeredPrior, state: State) -> Tensor:
        """The Bethe estimate of log Z, (batch,), float64.

        With Z_i of a unit under all messages and Z_{i->j} without the message over one edge it is (eq. 64)

            Σ_i log Z_i - Σ_(ij) (log Z_i - log Z_{i->j}).

        The paper's F is log Z: without couplings it is the sum of the log Z_i. Counted from either of its ends, an edge
        contributes the same to second order. Here it is counted from its even layer: the third order then lacks only
        the third cumulants of these units, which are zero where the image is known.
        """
        depth = len(machine.layers)
        machine = machine.to(torch.float64)
        received = _per_edge(machine, tuple(messages.double() for messages in state[2 * depth :]))
        _, replies = answers(machine, range(1, depth, 2), received)
        own = []
        for layer, units in enumerate(machine.layers):
            total, cavities = fields_of(machine, layer, received if layer % 2 else replies)
            log_z = units.log_partition(total)
            own.append(log_z.sum(-1))
            if layer % 2 == 0:
                lone = for_several(units)
                own += [(lone.log_partition(cavity) - log_z.unsqueeze(-2)).sum((1, 2)) for cavity in cavities]
        return torch.stack(own).sum(0)


def _spread(values: Tensor, coupling: Coupling, *, lower: bool) -> Tensor:
    """Copy values of the lower or upper units of a coupling, (batch, n), to all their edges; (batch, edges)."""
    return values.unsqueeze(-1 if lower else -2).expand(-1, *coupling.sizes).flatten(1)


def _per_edge(machine: LayeredPrior, flat: Sequence[Tensor]) -> State:
    """Reshape the messages of a state, (batch, edges), to those of `fields_of`."""
    shapes = [coupling.sizes for coupling in machine.couplings] * 2
    return tuple(values.unflatten(-1, shape) for values, shape in zip(flat, shapes, strict=True))
