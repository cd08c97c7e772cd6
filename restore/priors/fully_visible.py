"""Fully visible Boltzmann machines: every pixel coupled with every other, and no hidden units (BSLM, sec. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from restore.couplings import Coupling, Symmetric
from restore.errors import UsageError
from restore.priors.machine import BoltzmannMachine
from restore.units import Bernoulli, Units


@dataclass(frozen=True)
class FullyVisible(BoltzmannMachine):
    """A machine without hidden units: log p(v) = log_weight(v) + vᵀJv / 2 - log Z. J is a `Symmetric` coupling.

    >>> alike = FullyVisible.binary(torch.tensor([[0.0, 3.0], [3.0, 0.0]]), torch.tensor([-1.5, -1.5]))
    >>> alike.free_energy(torch.tensor([[1.0, 1.0], [0.0, 1.0]])).tolist()  # lower is more probable
    [0.0, 1.5]
    """

    default_coupling: ClassVar[type[Coupling]] = Symmetric

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.layers) != 1 or len(self.couplings) != 1:
            counts = f"{len(self.layers)} and {len(self.couplings)}"
            raise ValueError(f"a fully visible machine has one layer and one coupling, not {counts}")
        size, shape = self.layers[0].size, self.couplings[0].sizes
        if shape != (size, size):
            raise ValueError(f"a coupling of shape {shape} does not join {size} units with each other")

    @classmethod
    def binary(cls, couplings: Tensor, bias: Tensor) -> FullyVisible:
        """A machine of units in {0, 1} from J (D, D) and bias (D,)."""
        return cls((Bernoulli(bias),), (Symmetric(couplings),))

    @classmethod
    def from_spins(cls, couplings: Tensor, bias: Tensor) -> FullyVisible:
        """The machine over v = (1 + x) / 2 for spins x in {-1, 1} with p(x) ∝ exp(xᵀMx / 2 + bᵀx).

        J = 4M, its bias is 2(b - M1), and log Z of the spins is larger by 1ᵀM1 / 2 - 1ᵀb.

        Args:
            couplings: M (D, D), symmetric with a diagonal of zeros.
            bias: b (D,).
        """
        return cls.binary(4 * couplings, 2 * (bias - couplings.sum(1)))

    @property
    def weights(self) -> Tensor:
        return self.couplings[0].weights

    @property
    def visible(self) -> Units:
        return self.layers[0]

    def neighbour_sum(self, couplings: Sequence[Coupling], layer: int, states: Sequence[Tensor]) -> Tensor:
        """v J: the layer is its own neighbour."""
        return couplings[layer].up(states[layer])

    def pair_sum(self, couplings: Sequence[Coupling], states: Sequence[Tensor]) -> Tensor:
        """vᵀJv / 2."""
        return couplings[0].interaction(states[0], states[0])

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) with log p(v) = -F(v) - log Z, here the energy; shape (batch,)."""
        return self.energy((visible,))

    def gibbs_sweep(self, visible: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw each unit of states (batch, D) given all others, one after the other.

        Raises:
            UsageError: if the units are not bits.
        """
        if not isinstance(self.visible, Bernoulli):
            raise UsageError("a fully visible machine is sampled only where its units are 0 or 1; see `from_spins`")
        states = visible.T.clone()
        for unit, row in enumerate(self.weights):
            uniform = torch.rand(states.shape[1], dtype=states.dtype, device=states.device, generator=generator)
            bias = self.visible.parameters["bias"][..., unit]
            states[unit] = (uniform < torch.sigmoid(bias + row @ states)).to(states.dtype)
        return states.T.contiguous()
