"""Convolutional RBMs: every hidden feature looks at all places of an image through the same small window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from restore.couplings.convolution import Convolution
from restore.priors.rbm import RBM
from restore.units import Bernoulli


@dataclass(frozen=True)
class Shared:
    """What all places of an image share, for units that are -1 and 1.

    Pixels beyond the border are 0 then: absent, neither black nor white.

    Attributes:
        features: (features, side²), what pixels and hidden units make of each other, row by row of a square.
        visible_bias, hidden_bias: (1,) of all pixels, (features,) of hidden units.
    """

    features: Tensor
    visible_bias: Tensor
    hidden_bias: Tensor

    @property
    def squares(self) -> Tensor:
        """The features as squares, (features, side, side).

        Raises:
            ValueError: if they are no squares.
        """
        side = math.isqrt(self.features.shape[1])
        if side**2 != self.features.shape[1]:
            raise ValueError(f"features of {self.features.shape[1]} weights are no squares")
        return self.features.unflatten(1, (side, side))

    def to(self, target: torch.device | torch.dtype) -> Shared:
        return Shared(self.features.to(target), self.visible_bias.to(target), self.hidden_bias.to(target))


@dataclass(frozen=True)
class ConvolutionalRBM(RBM):
    """An RBM with few parameters, which are the same at every place (Lee et al., ICML 2009), over binary units.

    Solvers see any RBM over bits. Learners see what is shared: `parameters` are those of `shared`, whatever evidence
    the machine is under.

    Attributes:
        shared: what all places share; see `of`.

    >>> likes_equal = Shared(torch.full((1, 4), 0.5), torch.zeros(1), torch.zeros(1))
    >>> machine = ConvolutionalRBM.of(likes_equal, (2, 2))
    >>> images = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    >>> equal, different = (-machine.free_energy(images)).tolist()
    >>> equal > different
    True
    """

    shared: Shared

    @classmethod
    def of(cls, shared: Shared, image_shape: tuple[int, int]) -> Self:
        """The machine for images of some shape (H, W)."""
        features = shared.squares
        spins = Convolution(features.unsqueeze(1), image_shape)
        pixels, hidden = spins.sizes
        # As in `RBM.from_spins`: each unit's bias depends on the sum of its couplings.
        below = spins.down(features.new_ones(1, hidden)).squeeze(0)
        above = spins.up(features.new_ones(1, pixels)).squeeze(0)
        own = shared.hidden_bias[:, None].expand(-1, hidden // len(features)).flatten()
        layers = Bernoulli(2 * (shared.visible_bias - below)), Bernoulli(2 * (own - above))
        return cls(layers, (spins.with_weights(4 * spins.weights),), shared)

    @property
    def image_shape(self) -> tuple[int, int]:
        coupling = self.couplings[0]
        assert isinstance(coupling, Convolution)
        return coupling.image_shape

    @property
    def parameters(self) -> dict[str, Tensor]:
        shared = self.shared
        return {"weights.0": shared.features, "units.0.bias": shared.visible_bias, "units.1.bias": shared.hidden_bias}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The machine without evidence, with other parameters."""
        return self.of(shared_of(parameters), self.image_shape)

    def to(self, target: torch.device | torch.dtype) -> Self:
        layers = tuple(
            layer.with_parameters({name: value.to(target) for name, value in layer.parameters.items()})
            for layer in self.layers
        )
        couplings = tuple(coupling.with_weights(coupling.weights.to(target)) for coupling in self.couplings)
        return replace(self, layers=layers, couplings=couplings, shared=self.shared.to(target))


def shared_of(parameters: Mapping[str, Tensor]) -> Shared:
    """The shared parameters as `ConvolutionalRBM.parameters` names them."""
    return Shared(parameters["weights.0"], parameters["units.0.bias"], parameters["units.1.bias"])
