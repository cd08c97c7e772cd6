"""Layered Boltzmann machines: units in layers, couplings between neighbouring layers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import linear

from restore.fields import Fields
from restore.units import Units


@dataclass(frozen=True)
class LayeredPrior:
    """log p(x_0, ..., x_L) = sum_l log_weight_l(x_l) + sum_l x_l^T W_l x_{l+1} - log Z.

    Attributes:
        layers: units of each layer; layer 0 is the image.
        couplings: couplings[l] joins layers l and l + 1 and has shape (size of l, size of l + 1).
    """

    layers: tuple[Units, ...]
    couplings: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        sizes = [layer.size for layer in self.layers]
        shapes = [tuple(coupling.shape) for coupling in self.couplings]
        if len(sizes) < 2 or shapes != list(pairwise(sizes)):
            raise ValueError(f"layers of sizes {sizes} cannot be joined by couplings of shapes {shapes}")

    @cached_property
    def squared_couplings(self) -> tuple[Tensor, ...]:
        """W∘W for every coupling: what the variances of one layer contribute to the next (TAP)."""
        return tuple(coupling * coupling for coupling in self.couplings)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter by name: `weights.L` per coupling, `units.L.NAME` per layer."""
        named = {f"weights.{index}": coupling for index, coupling in enumerate(self.couplings)}
        for index, layer in enumerate(self.layers):
            named |= {f"units.{index}.{name}": value for name, value in layer.parameters.items()}
        return named

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The same kind of machine with other parameters, named as in `parameters`."""
        layers = tuple(
            layer.with_parameters({name: parameters[f"units.{index}.{name}"] for name in layer.parameters})
            for index, layer in enumerate(self.layers)
        )
        couplings = tuple(parameters[f"weights.{index}"] for index in range(len(self.couplings)))
        return replace(self, layers=layers, couplings=couplings)

    def to(self, target: torch.device | torch.dtype) -> Self:
        """The machine on another device or in another precision."""
        return self.with_parameters({name: value.to(target) for name, value in self.parameters.items()})

    def tilt(self, *fields: Fields | None) -> Self:
        """The machine under evidence: fields per layer, the image first; None or nothing leaves a layer alone."""
        padded = (*fields, *[None] * (len(self.layers) - len(fields)))
        layers = tuple(
            layer if extra is None else layer.tilt(extra) for layer, extra in zip(self.layers, padded, strict=True)
        )
        return replace(self, layers=layers)

    def rows(self, index: Tensor) -> Self:
        """The machines of the given rows of a batch of tilted machines."""
        taken = replace(self, layers=tuple(layer.rows(index) for layer in self.layers))
        if "squared_couplings" in vars(self):
            vars(taken)["squared_couplings"] = self.squared_couplings
        return taken

    def inputs(self, layer: int, states: Sequence[Tensor]) -> Tensor:
        """Linear field on a layer from its neighbours' states; shape (batch, size of the layer)."""
        return self.neighbour_sum(self.couplings, layer, states)

    def neighbour_sum(self, couplings: Sequence[Tensor], layer: int, states: Sequence[Tensor]) -> Tensor:
        """Sum over neighbouring layers of states times the couplings given (the machine's, or their squares)."""
        terms = []
        if layer > 0:
            terms.append(states[layer - 1] @ couplings[layer - 1])
        if layer + 1 < len(self.layers):
            # states @ coupling.T; no view of a coupling may enter a loop beside it when a graph is traced.
            terms.append(linear(states[layer + 1], couplings[layer]))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def interaction(self, couplings: Sequence[Tensor], states: Sequence[Tensor]) -> Tensor:
        """sum_l x_l^T W_l x_{l+1} for the couplings given; shape (batch,)."""
        pairs = zip(couplings, states, states[1:], strict=False)
        return torch.stack([((left @ coupling) * right).sum(-1) for coupling, left, right in pairs]).sum(0)

    def energy(self, states: Sequence[Tensor]) -> Tensor:
        """Minus the log of the unnormalised probability of a joint state; states per layer, result (batch,)."""
        own = torch.stack([layer.log_weight(x).sum(-1) for layer, x in zip(self.layers, states, strict=True)]).sum(0)
        return -own - self.interaction(self.couplings, states)
