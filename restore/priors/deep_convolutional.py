"""Convolutional deep Boltzmann machines: layers of features, each at every few places of the layer below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Self

import torch
from torch import Tensor

from restore.couplings.strided import Strided
from restore.priors.convolutional import Uniform
from restore.units import Bernoulli, Rectified, Spin, Units


@dataclass(frozen=True)
class ConvolutionalDBM(Uniform):
    """A deep machine of features at every few places: rectified Gaussian ones above the pixels, spins above these.

    Spins keep features of any strength from growing without bound. What is shared is of pixels' difference from a
    centre: without it the many pixels that are paper would hold all layers above at one end (Montavon & Müller, Neural
    Networks: Tricks of the Trade, 2012).

    Attributes:
        shared: `weights.L` (features, channels, side, side) and `units.L.bias` (channels,) of each layer, for pixels
            that are -1 and 1, and `units.0.centre` (1,), the share of white that tells the layer above nothing; see
            `of`.

    >>> shared = {"weights.0": torch.ones(1, 1, 2, 2), "weights.1": torch.ones(1, 1, 2, 2)}
    >>> shared |= {f"units.{layer}.bias": torch.zeros(1) for layer in range(3)}
    >>> shared["units.0.centre"] = torch.full((1,), 0.5)
    >>> [layer.size for layer in ConvolutionalDBM.of(shared, (5, 4), stride=2).layers]
    [20, 6, 2]
    """

    @classmethod
    def of(cls, shared: Mapping[str, Tensor], image_shape: tuple[int, int], stride: int) -> Self:
        """The machine for images of some shape (H, W)."""
        couplings, grids = list[Strided](), [image_shape]
        for name in takewhile(shared.__contains__, (f"weights.{index}" for index in count())):
            couplings.append(Strided(shared[name], grids[-1], stride))
            grids.append(couplings[-1].places)
        pixels, features, *above = (
            shared[f"units.{index}.bias"].repeat(rows * columns) for index, (rows, columns) in enumerate(grids)
        )
        # A bit b is a spin of 2b - 1, which differs from its centre by 2 (b - centre).
        lowest = couplings[0].with_weights(2 * couplings[0].weights)
        features = features - lowest.up(shared["units.0.centre"].repeat(lowest.sizes[0]))
        layers: list[Units] = [Bernoulli(2 * pixels), Rectified(features, torch.ones_like(features)), *map(Spin, above)]
        return cls(tuple(layers), (lowest, *couplings[1:]), shared)

    @property
    def lowest(self) -> Strided:
        coupling = self.couplings[0]
        assert isinstance(coupling, Strided)
        return coupling

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The machine without evidence, with other parameters."""
        return self.of(parameters, self.lowest.image_shape, self.lowest.stride)
