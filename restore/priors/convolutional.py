"""Convolutional RBMs: each hidden feature has the same small window at every position of an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from restore.couplings.convolution import Convolution
from restore.priors.layered import LayeredPrior
from restore.priors.rbm import RBM
from restore.units import Bernoulli


@dataclass(frozen=True)
class TranslationInvariant(LayeredPrior):
    """A machine over binary units with the same parameters at every position.

    For solvers it is any layered machine over bits. Learners use the shared parameters, which evidence does not change.

    Attributes:
        shared: the parameters by name, for units that are -1 and 1. Units beyond the border are absent, 0.
    """

    shared: Mapping[str, Tensor]

    @property
    def parameters(self) -> dict[str, Tensor]:
        return dict(self.shared)

    def to(self, target: torch.device | torch.dtype) -> Self:
        layers = tuple(
            layer.with_parameters({name: value.to(target) for name, value in layer.parameters.items()})
            for layer in self.layers
        )
        couplings = tuple(coupling.with_weights(coupling.weights.to(target)) for coupling in self.couplings)
        shared = {name: value.to(target) for name, value in self.shared.items()}
        return replace(self, layers=layers, couplings=couplings, shared=shared)


@dataclass(frozen=True)
class ConvolutionalRBM(TranslationInvariant, RBM):
    """An RBM with features at every position of an image (Lee et al., ICML 2009).

    Attributes:
        shared: `weights.0` (features, side²), couplings of pixels and hidden units, row by row of a square;
            `units.0.bias` (1,) of all pixels and `units.1.bias` (features,) of hidden units; see `of`.

    >>> likes_equal = {"weights.0": torch.full((1, 4), 0.5), "units.0.bias": torch.zeros(1)}
    >>> machine = ConvolutionalRBM.of(likes_equal | {"units.1.bias": torch.zeros(1)}, (2, 2))
    >>> images = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    >>> equal, different = (-machine.free_energy(images)).tolist()
    >>> equal > different
    True
    """

    @classmethod
    def of(cls, shared: Mapping[str, Tensor], image_shape: tuple[int, int]) -> Self:
        """The machine for images of some shape (H, W)."""
        features, visible_bias, hidden_bias = (shared[name] for name in ("weights.0", "units.0.bias", "units.1.bias"))
        spins = Convolution(squares(features).unsqueeze(1), image_shape)
        pixels, hidden = spins.sizes
        # As in `RBM.from_spins`: each unit's bias depends on the sum of its couplings.
        below = spins.down(features.new_ones(1, hidden)).squeeze(0)
        above = spins.up(features.new_ones(1, pixels)).squeeze(0)
        own = hidden_bias[:, None].expand(-1, hidden // len(features)).flatten()
        layers = Bernoulli(2 * (visible_bias - below)), Bernoulli(2 * (own - above))
        return cls(layers, (spins.with_weights(4 * spins.weights),), shared)

    @property
    def image_shape(self) -> tuple[int, int]:
        coupling = self.couplings[0]
        assert isinstance(coupling, Convolution)
        return coupling.image_shape

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The machine without evidence, with other parameters."""
        return self.of(parameters, self.image_shape)


def squares(features: Tensor) -> Tensor:
    """Features (features, side²) as squares, (features, side, side); raises ValueError if they are none."""
    side = math.isqrt(features.shape[1])
    if side**2 != features.shape[1]:
        raise ValueError(f"features of {features.shape[1]} weights are no squares")
    return features.unflatten(1, (side, side))
