"""Layered Boltzmann machines: units in layers, couplings between neighbouring layers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from restore.couplings import Coupling
from restore.fields import Fields
from restore.priors.machine import BoltzmannMachine


@dataclass(frozen=True)
class LayeredPrior(BoltzmannMachine):
    """A machine of several layers: log p(x) = sum_l log_weight_l(x_l) + sum_l x_l^T W_l x_{l+1} - log Z.

    couplings[l] joins layers l and l + 1.

    >>> from restore.units import Bernoulli
    >>> layers = tuple(Bernoulli(torch.zeros(size)) for size in (4, 3, 2))
    >>> deep = LayeredPrior(layers, (torch.ones(4, 3), torch.ones(3, 2)))
    >>> deep.energy(tuple(torch.ones(1, layer.size) for layer in layers)).item()
    -18.0
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = [layer.size for layer in self.layers]
        shapes = [coupling.sizes for coupling in self.couplings]
        if len(sizes) < 2 or shapes != list(pairwise(sizes)):
            raise ValueError(f"layers of sizes {sizes} cannot be joined by couplings of shapes {shapes}")

    def above(self, visible: Tensor) -> LayeredPrior:
        """The machine of the other layers, at least two, given visible states (batch, D)."""
        lowest = self.layers[1].tilt(Fields(self.couplings[0].up(visible)))
        return LayeredPrior((lowest, *self.layers[2:]), self.couplings[1:])

    def sweep(self, states: Sequence[Tensor], generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """Draw the odd layers given the even ones, then the even given the odd; states per layer (batch, units)."""
        drawn = list(states)
        for layer in (*range(1, len(drawn), 2), *range(0, len(drawn), 2)):
            drawn[layer] = self.layers[layer].sample(Fields(self.inputs(layer, drawn)), generator)
        return tuple(drawn)

    def neighbour_sum(self, couplings: Sequence[Coupling], layer: int, states: Sequence[Tensor]) -> Tensor:
        terms = []
        if layer > 0:
            terms.append(couplings[layer - 1].up(states[layer - 1]))
        if layer + 1 < len(self.layers):
            terms.append(couplings[layer].down(states[layer + 1]))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def pair_sum(self, couplings: Sequence[Coupling], states: Sequence[Tensor]) -> Tensor:
        pairs = zip(couplings, states, states[1:], strict=False)
        return torch.stack([coupling.interaction(below, above) for coupling, below, above in pairs]).sum(0)
