"""Relaxed belief propagation: messages over edges as in belief propagation, but a mean and a variance for any unit.

TAP machine, appendix B. What unit i is without what came over the edge to j is a law of its own kind of units under

    B_{i->j} = Σ_{l != j} W_il a_{l->i},   A_{i->j} = -Σ_{l != j} W_il² c_{l->i}

and sends its mean a_{i->j} and variance c_{i->j} on (eqs. 57-62, with the signs of exp(B x - A x² / 2)). Gaussian
neighbours are taken in full by that; of others the third cumulant and what follows are left out, so that errors are of
third order in the weights, as those of TAP. TAP is what comes of it where every single weight is small.

Layers with even numbers and those with odd ones answer each other in turns, and every edge joins one of each. So the
messages that even layers have sent are all there is to remember.
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
from restore.units import Units

# Arrays of messages that an image takes.
ARRAYS = 32


def across_edges(units: Units) -> Units:
    """Units that take fields per edge, (batch, neighbours, n): what parameters they have is the same at all edges."""
    return units.with_parameters(
        {name: value if value.dim() == 1 else value.unsqueeze(-2) for name, value in units.parameters.items()}
    )


def edges_of(machine: LayeredPrior, layer: int) -> list[int]:
    """The couplings that join a layer to the one below and the one above it, where there are such."""
    return [index for index in (layer - 1, layer) if 0 <= index < len(machine.couplings)]


def turned(values: Tensor, index: int, layer: int) -> Tensor:
    """Values per edge of a coupling, (..., lower units, upper units), with the units of the layer last; and back."""
    return values.mT if index == layer else values


def fields_of(machine: LayeredPrior, layer: int, messages: State) -> tuple[Fields, list[Fields]]:
    """What its neighbours tell each unit of a layer, (batch, n); and per coupling without the neighbour at each edge.

    Args:
        machine: under evidence.
        layer: which.
        messages: that its neighbours have sent: means per coupling, (batch, lower units, upper units), then variances.

    Returns:
        The fields, and those of the cavities, (batch, neighbours, n), in the order of `edges_of`.
    """
    means, variances = messages[: len(machine.couplings)], messages[len(machine.couplings) :]
    edges = edges_of(machine, layer)
    linear = [turned(machine.couplings[index].matrix * means[index], index, layer) for index in edges]
    quadratic = [turned(-machine.squared_couplings[index].matrix * variances[index], index, layer) for index in edges]
    total = Fields(*(torch.stack([each.sum(-2) for each in parts]).sum(0) for parts in (linear, quadratic)))
    return total, [
        Fields(total.linear.unsqueeze(-2) - one, total.quadratic.unsqueeze(-2) - other)
        for one, other in zip(linear, quadratic, strict=True)
    ]


def answers(machine: LayeredPrior, layers: range, received: State) -> tuple[dict[int, tuple[Tensor, Tensor]], State]:
    """Mean and variance of each unit of every other layer; and the messages that these layers send, as in `fields_of`.

    Args:
        machine: under evidence.
        layers: those with even, or those with odd numbers.
        received: messages that the others have sent.
    """
    marginals: dict[int, tuple[Tensor, Tensor]] = {}
    sent = list(received)
    for layer in layers:
        units = machine.layers[layer]
        total, cavities = fields_of(machine, layer, received)
        marginals[layer] = units.moments(total)
        for index, cavity in zip(edges_of(machine, layer), cavities, strict=True):
            mean, variance = across_edges(units).moments(cavity)
            sent[index], sent[index + len(machine.couplings)] = (turned(v, index, layer) for v in (mean, variance))
    return marginals, tuple(sent)


class RelaxedBeliefPropagation(HeavyMap[LayeredPrior]):
    """Settings of relaxed belief propagation on a machine of two or more layers; messages of even layers are damped."""

    name = "relaxed belief propagation"

    def init(self, machine: LayeredPrior, start: Tensor) -> State:
        """The state that starts from visible means (batch, D): of all layers means, then variances, then messages.

        A message is first what its sender is by mean field, and the image is as certain as data.
        """
        # Here, so that no iteration has to; in a graph each one would.
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
        """One iteration: odd layers answer the messages of even ones, and these answer back."""
        depth = len(machine.layers)
        old = state[2 * depth :]
        odd, replies = answers(machine, range(1, depth, 2), _per_edge(machine, old))
        even, sent = answers(machine, range(0, depth, 2), replies)
        marginals = [(odd | even)[layer] for layer in range(depth)]
        means, variances = zip(*marginals, strict=True)
        return (*means, *variances, *damped(tuple(each.flatten(1) for each in sent), old, self.damping))

    def numbers(self, machine: LayeredPrior) -> int:
        """See `HeavyMap`: messages, most of them for log Z, which is found in double precision."""
        return ARRAYS * sum(math.prod(coupling.sizes) for coupling in machine.couplings)

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None) -> Solution:
        """See `HeavyMap`; raises UsageError for a machine that is not in layers too."""
        if not isinstance(machine, LayeredPrior):
            raise UsageError(f"{self.name} is for machines in layers, not for {type(machine).__name__}")
        return super().solve(machine, start)

    def log_partition(self, machine: LayeredPrior, state: State) -> Tensor:
        """The Bethe estimate of log Z, (batch,), float64.

        With Z_i of a unit under all messages and Z_{i->j} without that over one edge it is (eq. 64)

            Σ_i log Z_i - Σ_(ij) (log Z_i - log Z_{i->j}).

        What the paper prints as F is log Z: without couplings it is the sum of the log Z_i. An edge counts the same to
        second order from either of its ends. Here it counts from that in an even layer: the third order then lacks
        what comes from third cumulants of these units alone, nothing where the image is known.
        """
        depth = len(machine.layers)
        machine = machine.to(torch.float64)
        received = _per_edge(machine, tuple(each.double() for each in state[2 * depth :]))
        _, replies = answers(machine, range(1, depth, 2), received)
        own = []
        for layer, units in enumerate(machine.layers):
            total, cavities = fields_of(machine, layer, received if layer % 2 else replies)
            log_z = units.log_partition(total)
            own.append(log_z.sum(-1))
            if layer % 2 == 0:
                lone = across_edges(units)
                own += [(lone.log_partition(cavity) - log_z.unsqueeze(-2)).sum((1, 2)) for cavity in cavities]
        return torch.stack(own).sum(0)


def _spread(values: Tensor, coupling: Coupling, *, lower: bool) -> Tensor:
    """Values of the lower or upper units of a coupling, (batch, n), at all their edges; (batch, edges)."""
    return values.unsqueeze(-1 if lower else -2).expand(-1, *coupling.sizes).flatten(1)


def _per_edge(machine: LayeredPrior, flat: Sequence[Tensor]) -> State:
    """Messages as in `fields_of` from those of a state, (batch, edges)."""
    shapes = [coupling.sizes for coupling in machine.couplings] * 2
    return tuple(values.unflatten(-1, shape) for values, shape in zip(flat, shapes, strict=True))
