"""Convolutional deep Boltzmann machines: layers of features with strides."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

from restore.channels.views import views_of_odds
from restore.couplings.convolution import Convolution
from restore.fields import Fields
from restore.priors.layered import LayeredPrior
from restore.units import Bernoulli, Units
from restore.units.contract import mapped
from restore.units.layers import blank


@dataclass(frozen=True)
class ConvolutionalDBM(LayeredPrior):
    """A deep machine of features at every place, or every few: each layer has its stride and its type of units.

    Unbounded features have curvature 1, and neighbours that are bounded keep them from growing without bound. What is
    shared is of pixels' difference from a centre: without it the many pixels that are paper would hold all layers above
    at one end (Montavon & Müller, Neural Networks: Tricks of the Trade, 2012).

    For solvers it is any layered machine; learners use the shared parameters, which evidence does not change.

    Attributes:
        shared: `weights.L` (features, channels, side, side) and `units.L.bias` (channels,) of each layer, for pixels
            that are -1 and 1, and `units.0.centre` (1,), the share of white that tells the layer above nothing; see
            `of`. There may be `inputs.L` (features, views, side, side) from the damaged image to a hidden layer: the
            machine is then a conditional one, p(v, h | damaged image), as the conditional RBM.
        kinds: the stride and the type of units (a key of `UNITS`) of each hidden layer.

    >>> import torch
    >>> shared = {"weights.0": torch.ones(1, 1, 2, 2), "weights.1": torch.ones(1, 1, 3, 3)}
    >>> shared |= {f"units.{layer}.bias": torch.zeros(1) for layer in range(3)}
    >>> shared["units.0.centre"] = torch.full((1,), 0.5)
    >>> machine = ConvolutionalDBM.of(shared, (5, 4), ((2, "rectified"), (1, "spin")))
    >>> [layer.size for layer in machine.layers]
    [20, 6, 6]
    """

    shared: Mapping[str, Tensor]
    kinds: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, shared: Mapping[str, Tensor], image_shape: tuple[int, int], kinds: Sequence[tuple[int, str]]) -> Self:
        """The machine for images of some shape (H, W)."""
        couplings = list[Convolution]()
        grid = image_shape
        biases = list[Tensor]()
        for index, (stride, _) in enumerate(kinds):
            couplings.append(Convolution(shared[f"weights.{index}"], grid, stride))
            grid = couplings[-1].places
            biases.append(shared[f"units.{index + 1}.bias"][:, None].expand(-1, grid[0] * grid[1]).flatten())
        # A bit b is a spin of 2b - 1, which differs from its centre by 2 (b - centre).
        lowest = couplings[0].with_weights(2 * couplings[0].weights)
        pixels = couplings[0].sizes[0]
        biases[0] = biases[0] - lowest.up(shared["units.0.centre"].repeat(pixels))
        layers: list[Units] = [Bernoulli(2 * shared["units.0.bias"].repeat(pixels))]
        for (_, units), bias in zip(kinds, biases, strict=True):
            # One curvature for all: a layer of a page has millions of units.
            layer = blank(units, len(bias), bias)
            layers.append(layer.with_parameters(dict.fromkeys(layer.parameters, bias.new_ones(1)) | {"bias": bias}))
        return cls(tuple(layers), (lowest, *couplings[1:]), shared, tuple(kinds))

    def tilt(self, *fields: Fields | None) -> Self:
        """The machine under evidence on the image (batch, D), which its `inputs` carry to hidden layers, too."""
        (evidence,) = fields
        assert evidence is not None
        return super().tilt(*self.heard(evidence))

    def heard(self, evidence: Fields) -> list[Fields | None]:
        """The fields that evidence on the image gives each layer, the image first."""
        if not any(name.startswith("inputs") for name in self.shared):
            return [evidence]
        odds = evidence.linear - evidence.quadratic / 2  # for bits x² = x
        return [evidence, *self.through_inputs(views_of_odds(odds))[1:]]

    def through_inputs(self, views: Tensor) -> list[Fields | None]:
        """The fields that views of the damaged image (batch, views · D) give each layer that has `inputs`."""
        lowest = self.couplings[0]
        steps = accumulate((stride for stride, _ in self.kinds), operator.mul, initial=1)
        assert isinstance(lowest, Convolution)
        kernels = (self.shared.get(f"inputs.{layer}") for layer in range(len(self.layers)))
        return [
            None if kernel is None else Fields(Convolution(kernel, lowest.image_shape, step).up(views))
            for kernel, step in zip(kernels, steps, strict=True)
        ]

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The machine without evidence, with other parameters."""
        lowest = self.couplings[0]
        assert isinstance(lowest, Convolution)
        return self.of(parameters, lowest.image_shape, self.kinds)

    @property
    def parameters(self) -> dict[str, Tensor]:
        return dict(self.shared)

    def to(self, target: torch.device | torch.dtype) -> Self:
        layers = tuple(mapped(layer, lambda value: value.to(target)) for layer in self.layers)
        couplings = tuple(coupling.with_weights(coupling.weights.to(target)) for coupling in self.couplings)
        shared = {name: value.to(target) for name, value in self.shared.items()}
        return replace(self, layers=layers, couplings=couplings, shared=shared)
