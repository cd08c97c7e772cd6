"""What describes the machine of a prior, whatever its family makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from restore.registry import UNITS


class Features(NamedTuple):
    """A layer of features, as [16, 3, 1, "rectified"] in a recipe.

    Attributes:
        number: features at every position.
        side: of the square window in the layer below, an odd multiple of the stride.
        stride: the step between positions, in units of the layer below.
        units: their type, a key of `UNITS`.
    """

    number: int
    side: int
    stride: int
    units: str


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys of a recipe's [prior], and of a header, that describe a machine.

    Attributes:
        family: a key of `FAMILIES`.
        hidden: number of hidden units; of the layer next to the image for a deep machine, of each component for a
            mixture, 0 without hidden units and for machines of layers. A recipe may leave it to growth, "auto".
        visible, hidden_type: unit types, keys of `UNITS`.
        deeper: numbers of units of further hidden layers.
        components: number of Gaussians of a mixture.
        layers: the layers of a convolutional machine, that next to the image first.
    """

    hidden: int | Literal["auto"] = 0
    family: str = "rbm"
    visible: str = "bernoulli"
    hidden_type: str = "bernoulli"
    deeper: tuple[int, ...] = ()
    components: int = 0
    layers: tuple[Features, ...] = ()

    @property
    def grey(self) -> bool:
        """True if pixels are grey levels from 0 to 1 instead of black or white."""
        return not UNITS[self.visible].bits

    @property
    def binary(self) -> bool:
        """True if all units are 0 or 1."""
        types = {layer.units for layer in self.layers} or {self.hidden_type}
        return all(UNITS[name].bits for name in (self.visible, *types))

    @property
    def plain(self) -> bool:
        """True if all units are 0 or 1, in at most two layers."""
        return self.binary and not self.deeper

    @property
    def hidden_counts(self) -> tuple[int, ...]:
        """The numbers of hidden units, from the layer next to the image up."""
        assert self.hidden != "auto"
        return tuple(layer.number for layer in self.layers) or (self.hidden, *self.deeper)

    @property
    def step(self) -> int:
        """The pixels between neighbours of the coarsest layer."""
        return math.prod(layer.stride for layer in self.layers)
