"""The base of the families of priors: all that depends on the kind of machine.

`Keys`, which a `Spec` extends, describe the machine of a prior. Its family, a subclass of `Family`, defines the tensors
and units of such a machine and builds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from restore.errors import UsageError, require
from restore.registry import UNITS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.couplings import Coupling
    from restore.fields import Fields
    from restore.units import Units

Observation = Literal["flips and mask", "noise and mask", "one noise and mask", "page and mask", "learnt", "field"]

# The inputs of an exported graph for the observation.
OBSERVED: Mapping[Observation, tuple[str, ...]] = {
    "flips and mask": ("image", "p", "mask"),
    "noise and mask": ("image", "sigma", "p", "mask"),
    "one noise and mask": ("image", "sigma", "mask"),
    "page and mask": ("image", "mask"),
    "learnt": ("image",),
    "field": ("field",),
}

BITS: tuple[str, ...] = tuple(name for name, kind in UNITS.items() if kind.bits)

# Keys of a `Spec` that only some families have.
SPECIAL = ("deeper", "components")


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


class Family:
    """A family of priors. Nothing here loads torch before there are tensors.

    Attributes:
        words: the name of such a machine.
        observed: the observation of an exported graph, a key of `OBSERVED`; None for that of its pixels.
        structure: for solvers, "layered", with couplings between neighbouring layers, "pairwise", with
            couplings between pixels, or a "mixture" of Gaussians.
        pixels, hiddens: the types that visible and hidden units may have.
        special: the keys among `SPECIAL` that it has, each with the least value.
        hidden_units: True if it has hidden units.
        by_layers: True if `layers` describe its hidden units, one by one, and not `hidden`.
        grows: True if the number of hidden units may be found by growing them.
        continues: True if training may begin from another prior.
        learnt: True if it undoes only the damage that it has learnt; otherwise the caller gives the damage.
        any_size: True if all positions have the same parameters, so that it takes whole images of any size.
        pages: True if it sees grey pages, of which it has learnt what is ink.
        photographs: True if it has no preferred polarity, no two patches are the same, and colours are restored
            plane by plane.
    """

    words: ClassVar[str]
    observed: ClassVar[Observation | None] = None
    structure: ClassVar[Literal["layered", "pairwise", "mixture"]] = "layered"
    pixels: ClassVar[Sequence[str]] = BITS
    hiddens: ClassVar[Sequence[str]] = BITS
    special: ClassVar[Mapping[str, int]] = {}
    hidden_units: ClassVar[bool] = True
    by_layers: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    continues: ClassVar[bool] = False
    learnt: ClassVar[bool] = False
    any_size: ClassVar[bool] = False
    pages: ClassVar[bool] = False
    photographs: ClassVar[bool] = False

    def check(self, spec: Keys, image_shape: tuple[int, int] | None) -> None:
        """Refuse an impossible machine of this family; see `Spec.check`."""
        for name, known in (("visible", self.pixels), ("hidden_type", self.hiddens)):
            value = getattr(spec, name)
            require(value in known, f"{name} of a {self.words} must be one of {', '.join(known)}, not {value!r}")
        for name in SPECIAL:
            value = getattr(spec, name)
            least = self.special.get(name)
            numbers = [value] if isinstance(value, int) else value
            require(least is not None or not any(numbers), f"a {self.words} has no {name}; leave it out")
            if least is not None and min(numbers, default=0) < least:
                raise UsageError(f"{name} of a {self.words} must be at least {least}, not {value}")
        if bool(spec.layers) != self.by_layers:
            wanted = "is described by its layers; give them" if self.by_layers else "has no layers; leave them out"
            raise UsageError(f"a {self.words} {wanted}")
        if spec.hidden == "auto":
            require(self.grows, f"hidden of a {self.words} is a number; give one")
        elif (spec.hidden >= 1) != self.numbered or spec.hidden < 0:
            wanted = "at least 1" if self.numbered else "0; leave it out"
            raise UsageError(f"hidden of a {self.words} must be {wanted}, not {spec.hidden}")

    @property
    def numbered(self) -> bool:
        """True if `hidden` is a number of hidden units."""
        return self.hidden_units and not self.by_layers

    def observation(self, spec: Keys) -> Observation:
        """The kind of observation of an exported graph, a key of `OBSERVED`."""
        return self.observed or ("noise and mask" if spec.grey else "flips and mask")

    def sizes(self, spec: Keys, image_shape: tuple[int, int]) -> tuple[int, ...]:
        """Number of units of every layer, the image first."""
        return image_shape[0] * image_shape[1], *(spec.hidden_counts if self.structure == "layered" else ())

    def count(self, spec: Keys) -> str:
        """The hidden units in words."""
        return f"{spec.hidden} hidden units" + "".join(f", {size} above them" for size in spec.deeper)

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the machine's tensors in a weights file, by name."""
        sizes = self.sizes(spec, image_shape)
        shapes: dict[str, tuple[int, ...]] = {f"weights.{index}": pair for index, pair in enumerate(pairwise(sizes))}
        for index, (size, kind) in enumerate(zip(sizes, self.unit_kinds(spec, image_shape), strict=True)):
            shapes |= {f"units.{index}.{name}": (size,) for name in UNITS[kind].parameters}
        return shapes

    def unit_kinds(self, spec: Keys, image_shape: tuple[int, int]) -> tuple[str, ...]:
        """Unit type of every layer, the image first."""
        return spec.visible, *[spec.hidden_type] * (len(self.sizes(spec, image_shape)) - 1)

    def machine(self, spec: Keys, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> Any:
        """Build the machine from the tensors of a weights file, in single precision."""
        from restore.couplings import Dense
        from restore.units.layers import layer_of

        kinds = self.unit_kinds(spec, image_shape)
        layers = tuple(
            layer_of(kind, {name: values[f"units.{index}.{name}"] for name in UNITS[kind].parameters})
            for index, kind in enumerate(kinds)
        )
        couplings = tuple(Dense(values[f"weights.{index}"]) for index in range(len(layers) - 1))
        return self.joined(layers, couplings, values)

    def joined(self, layers: tuple[Units, ...], couplings: tuple[Coupling, ...], values: Mapping[str, Tensor]) -> Any:
        """Build the machine from layers and couplings; `values` are all tensors of the weights file."""
        from restore.priors import RBM, LayeredPrior

        return RBM(layers, couplings) if len(layers) == 2 else LayeredPrior(layers, couplings)

    def check_machine(self, machine: Any) -> None:
        """Refuse, with ValueError, a machine that has no distribution."""
        from restore.priors.stability import UNSTABLE, stable

        if not bool(stable(machine)):
            raise ValueError(UNSTABLE)

    def given(self, machine: Any, evidence: Fields) -> Any:
        """The machine under evidence (batch, D)."""
        return machine.tilt(evidence)

    def of_size(self, machine: Any, image_shape: tuple[int, int]) -> Any:
        """Return the machine for images of another size, if it takes any."""
        raise UsageError(f"a {self.words} is for images of one size")

    def hidden_in(self, spec: Keys, machine: Any) -> int:
        """The number of hidden units of a trained machine, for its header."""
        return int(machine.parameters["weights.0"].shape[1]) if self.grows else int(spec.hidden)

    def pixel_means(self, means: Tensor) -> Tensor:
        """The means that solvers start from, given those of the training images, (D,)."""
        return means

    def initial(
        self, spec: Keys, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> Any:
        """The machine before training, given the means of pixels, (D,); None if it depends on the images."""
        return None

    def pictures(self, machine: Any, image_shape: tuple[int, int]) -> Tensor:
        """The weights of every hidden unit as pictures, (N, H, W)."""
        weights: Tensor = machine.parameters["weights.0"].T
        return weights.unflatten(1, image_shape)
