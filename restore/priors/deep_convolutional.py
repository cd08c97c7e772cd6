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
from restore.units import Bernoulli


@dataclass(frozen=True)
class ConvolutionalDBM(Uniform):
    """A deep machine of features at every few places.

    What is shared is of pixels' difference from a centre: without it the many pixels that are paper would hold all
    layers above at one end (Montavon & Müller, Neural Networks: Tricks of the Trade, 2012).

    Attributes:
        shared: `weights.L` (features, channels, side, side) and `units.L.bias` (channels,) of each layer, and
            `units.0.centre` (1,), the share of white that tells the layer above nothing; see `of`. The
            coupling is the weight divided by the number of channels, so that a step of learning, which is of one size
            for all weights, moves the fields of all layers alike.

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
            weights = shared[name]
            couplings.append(Strided(weights / weights.shape[1], grids[-1], stride))
            grids.append(couplings[-1].places)
        layers = []
        for index, (rows, columns) in enumerate(grids):
            bias = shared[f"units.{index}.bias"]
            # As in `RBM.from_spins`: each unit's bias depends on the sum of its couplings.
            rest = 2 * shared["units.0.centre"] if index == 1 else bias.new_ones(1)
            sums = [each.up(rest.repeat(each.sizes[0])) for each in couplings[max(index - 1, 0) : index]]
            sums += [each.down(bias.new_ones(each.sizes[1])) for each in couplings[index : index + 1]]
            layers.append(Bernoulli(2 * (bias.repeat(rows * columns) - torch.stack(sums).sum(0))))
        return cls(tuple(layers), tuple(each.with_weights(4 * each.weights) for each in couplings), shared)

    @property
    def lowest(self) -> Strided:
        coupling = self.couplings[0]
        assert isinstance(coupling, Strided)
        return coupling

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The machine without evidence, with other parameters."""
        return self.of(parameters, self.lowest.image_shape, self.lowest.stride)
