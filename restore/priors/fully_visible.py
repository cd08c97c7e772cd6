"""Fully visible Boltzmann machines: every pixel joined to every other, and no hidden units (BSLM, sec. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.machine import BoltzmannMachine
from restore.tracing import tracing
from restore.units import Bernoulli, Units


@dataclass(frozen=True)
class FullyVisible(BoltzmannMachine):
    """log p(v) = log_weight(v) + vᵀJv / 2 - log Z, with J = couplings[0] symmetric, (D, D), and its diagonal zero.

    Raises:
        ValueError: if J is not.
    """

    def __post_init__(self) -> None:
        if len(self.layers) != 1 or len(self.couplings) != 1:
            raise ValueError(
                f"a fully visible machine has one layer and one coupling, not {len(self.layers)} and "
                f"{len(self.couplings)}"
            )
        size, shape = self.layers[0].size, tuple(self.couplings[0].shape)
        if shape != (size, size):
            raise ValueError(f"a coupling of shape {shape} does not join {size} units with each other")
        if not tracing() and not symmetric(self.couplings[0]):
            raise ValueError("the coupling must be symmetric and have a diagonal of zeros")

    @classmethod
    def binary(cls, couplings: Tensor, bias: Tensor) -> FullyVisible:
        """A machine of units in {0, 1} from J (D, D) and bias (D,)."""
        return cls((Bernoulli(bias),), (couplings,))

    @classmethod
    def from_spins(cls, couplings: Tensor, bias: Tensor) -> FullyVisible:
        """The machine over v = (1 + x) / 2 of one over spins x in {-1, 1}: p(x) ∝ exp(xᵀMx / 2 + bᵀx).

        J = 4M, its bias is 2(b - M1), and log Z of the spins is larger by 1ᵀM1 / 2 - 1ᵀb.

        Args:
            couplings: M (D, D), symmetric with a diagonal of zeros.
            bias: b (D,).
        """
        return cls.binary(4 * couplings, 2 * (bias - couplings.sum(1)))

    def to_spins(self) -> tuple[Tensor, Tensor]:
        """M and b of the same machine over spins x = 2v - 1; see `from_spins`."""
        couplings = self.weights / 4
        return couplings, self.visible.parameters["bias"] / 2 + couplings.sum(1)

    @property
    def weights(self) -> Tensor:
        return self.couplings[0]

    @property
    def visible(self) -> Units:
        return self.layers[0]

    def neighbour_sum(self, couplings: Sequence[Tensor], layer: int, states: Sequence[Tensor]) -> Tensor:
        """v J for the coupling given; the layer is its own neighbour."""
        return states[layer] @ couplings[layer]

    def interaction(self, couplings: Sequence[Tensor], states: Sequence[Tensor]) -> Tensor:
        """vᵀJv / 2 for the coupling given, so that each pair counts once; shape (batch,)."""
        return ((states[0] @ couplings[0]) * states[0]).sum(-1) / 2

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) with log p(v) = -F(v) - log Z; with nothing to sum out it is the energy. Shape (batch,)."""
        return self.energy((visible,))

    def gibbs_sweep(self, visible: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Every unit drawn anew given all others, one after the other, from states (batch, D); same shape.

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


def symmetric(couplings: Tensor) -> bool:
    """Whether a square matrix is symmetric with a diagonal of zeros, to the last bit."""
    return bool((couplings == couplings.T).all()) and not bool(couplings.diagonal().any())
