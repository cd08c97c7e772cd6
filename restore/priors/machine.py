"""Boltzmann machines: units joined by couplings, as solvers need them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from restore.couplings import Coupling, Dense
from restore.fields import Fields
from restore.units import Units
from restore.units.contract import rows_of


@dataclass(frozen=True)
class BoltzmannMachine(ABC):
    """log p(x) = sum_l log_weight_l(x_l) + interaction(x) - log Z, with the units x in layers x_0, x_1, ...

    Attributes:
        layers: units of each layer; layer 0 is the image.
        couplings: couplings between layers; which layers each joins depends on the kind of machine. A matrix stands for
            the machine's default kind of coupling.
    """

    layers: tuple[Units, ...]
    couplings: tuple[Coupling, ...]

    default_coupling: ClassVar[type[Coupling]] = Dense

    def __post_init__(self) -> None:
        default = self.default_coupling
        couplings = tuple(item if isinstance(item, Coupling) else default(item) for item in self.couplings)
        object.__setattr__(self, "couplings", couplings)

    @property
    def squared_couplings(self) -> tuple[Coupling, ...]:
        """All couplings squared; computed once for a machine and all its tilted copies."""
        return tuple(coupling.squared for coupling in self.couplings)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter by name: `weights.L` per coupling, `units.L.NAME` per layer."""
        named = {f"weights.{index}": coupling.weights for index, coupling in enumerate(self.couplings)}
        for index, layer in enumerate(self.layers):
            named |= {f"units.{index}.{name}": value for name, value in layer.parameters.items()}
        return named

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        layers = tuple(
            layer.with_parameters({name: parameters[f"units.{index}.{name}"] for name in layer.parameters})
            for index, layer in enumerate(self.layers)
        )
        couplings = tuple(
            coupling.with_weights(parameters[f"weights.{index}"]) for index, coupling in enumerate(self.couplings)
        )
        return replace(self, layers=layers, couplings=couplings)

    def to(self, target: torch.device | torch.dtype) -> Self:
        return self.with_parameters({name: value.to(target) for name, value in self.parameters.items()})

    def tilt(self, *fields: Fields | None) -> Self:
        """The machine under evidence: fields per layer, the image first; None or a missing one changes nothing."""
        padded = (*fields, *[None] * (len(self.layers) - len(fields)))
        layers = tuple(
            layer if extra is None else layer.tilt(extra) for layer, extra in zip(self.layers, padded, strict=True)
        )
        return replace(self, layers=layers)

    def rows(self, index: Tensor) -> Self:
        return replace(self, layers=tuple(rows_of(layer, index) for layer in self.layers))

    def inputs(self, layer: int, states: Sequence[Tensor]) -> Tensor:
        """Linear field on a layer from its neighbours' states; shape (batch, size of the layer)."""
        return self.neighbour_sum(self.couplings, layer, states)

    def squared_inputs(self, layer: int, variances: Sequence[Tensor]) -> Tensor:
        """As `inputs`, for variances and squared couplings."""
        return self.neighbour_sum(self.squared_couplings, layer, variances)

    def interaction(self, states: Sequence[Tensor]) -> Tensor:
        """The sum over coupled units of both states times their coupling; shape (batch,).

        Its derivative in the state of a layer is that layer's `inputs`.
        """
        return self.pair_sum(self.couplings, states)

    def squared_interaction(self, variances: Sequence[Tensor]) -> Tensor:
        """As `interaction`, for variances and squared couplings."""
        return self.pair_sum(self.squared_couplings, variances)

    @abstractmethod
    def neighbour_sum(self, couplings: Sequence[Coupling], layer: int, states: Sequence[Tensor]) -> Tensor:
        """The field that neighbours give a layer over these couplings: the machine's own, or their squares."""

    @abstractmethod
    def pair_sum(self, couplings: Sequence[Coupling], states: Sequence[Tensor]) -> Tensor:
        """The interaction over these couplings."""

    def energy(self, states: Sequence[Tensor]) -> Tensor:
        """Minus the log of the unnormalised probability of states, given per layer; (batch,)."""
        weights = [layer.log_weight(x).sum(-1) for layer, x in zip(self.layers, states, strict=True)]
        return -torch.stack(weights).sum(0) - self.interaction(states)
