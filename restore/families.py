"""Families of priors: all code that depends on the family.

A `Spec` describes the machine of a prior. Its family, a subclass of `Family` below, defines the tensors and units of
such a machine and builds it. A new family is a class here and an entry of `FAMILIES`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from restore.channels import Task, parse_task
from restore.errors import UsageError
from restore.registry import PIXEL_UNITS, SOLVERS, UNITS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.couplings import Coupling
    from restore.fields import Fields
    from restore.priors import RBM, ConditionalRBM, ConvolutionalDBM, ConvolutionalRBM, FullyVisible, GaussianMixture
    from restore.units import Units

Observation = Literal["flips and mask", "noise and mask", "one noise and mask", "learnt", "field"]

# The inputs of an exported graph for the observation.
OBSERVED: Mapping[Observation, tuple[str, ...]] = {
    "flips and mask": ("image", "p", "mask"),
    "noise and mask": ("image", "sigma", "p", "mask"),
    "one noise and mask": ("image", "sigma", "mask"),
    "learnt": ("image",),
    "field": ("field",),
}

BITS: tuple[str, ...] = tuple(name for name, kind in UNITS.items() if kind.bits)

# Keys of a `Spec` that only some families have.
SPECIAL = ("deeper", "components", "kernel")


class Family:
    """A family of priors. Nothing here loads torch before there are tensors.

    Attributes:
        words: the name of such a machine.
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
        photographs: True if it has no preferred polarity, no two patches are the same, and colours are restored
            plane by plane.
    """

    words: ClassVar[str]
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
    photographs: ClassVar[bool] = False

    def check(self, spec: Spec, image_shape: tuple[int, int] | None) -> None:
        """Refuse an impossible machine of this family; see `Spec.check`."""
        for name, known in (("visible", self.pixels), ("hidden_type", self.hiddens)):
            value = getattr(spec, name)
            if value not in known:
                raise UsageError(f"{name} of a {self.words} must be one of {', '.join(known)}, not {value!r}")
        for name in SPECIAL:
            value, least = getattr(spec, name), self.special.get(name)
            numbers = [value] if isinstance(value, int) else value
            if least is None and any(numbers):
                raise UsageError(f"a {self.words} has no {name}; leave it out")
            if least is not None and min(numbers, default=0) < least:
                raise UsageError(f"{name} of a {self.words} must be at least {least}, not {value}")
        if bool(spec.layers) != self.by_layers:
            wanted = "is described by its layers; give them" if self.by_layers else "has no layers; leave them out"
            raise UsageError(f"a {self.words} {wanted}")
        if spec.hidden == "auto":
            if not self.grows:
                raise UsageError(f"hidden of a {self.words} is a number; give one")
        elif (spec.hidden >= 1) != self.numbered or spec.hidden < 0:
            wanted = "at least 1" if self.numbered else "0; leave it out"
            raise UsageError(f"hidden of a {self.words} must be {wanted}, not {spec.hidden}")

    @property
    def numbered(self) -> bool:
        """True if `hidden` is a number of hidden units."""
        return self.hidden_units and not self.by_layers

    def observation(self, spec: Spec) -> Observation:
        """The kind of observation of an exported graph, a key of `OBSERVED`."""
        return "noise and mask" if spec.grey else "flips and mask"

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        """Number of units of every layer, the image first."""
        return image_shape[0] * image_shape[1], *spec.hidden_counts

    def count(self, spec: Spec) -> str:
        """The hidden units in words."""
        return f"{spec.hidden} hidden units" + "".join(f", {size} above them" for size in spec.deeper)

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the machine's tensors in a weights file, by name."""
        sizes = self.sizes(spec, image_shape)
        shapes: dict[str, tuple[int, ...]] = {f"weights.{index}": pair for index, pair in enumerate(pairwise(sizes))}
        for index, (size, kind) in enumerate(zip(sizes, self.unit_kinds(spec, image_shape), strict=True)):
            shapes |= {f"units.{index}.{name}": (size,) for name in UNITS[kind].parameters}
        return shapes

    def unit_kinds(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[str, ...]:
        """Unit type of every layer, the image first."""
        return spec.visible, *[spec.hidden_type] * (len(self.sizes(spec, image_shape)) - 1)

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> Any:
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

    def hidden_in(self, spec: Spec, machine: Any) -> int:
        """The number of hidden units of a trained machine, for its header."""
        return int(machine.parameters["weights.0"].shape[1]) if self.grows else int(spec.hidden)

    def pixel_means(self, means: Tensor) -> Tensor:
        """The means that solvers start from, given those of the training images, (D,)."""
        return means

    def initial(
        self, spec: Spec, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> Any:
        """The machine before training, given the means of pixels, (D,); None if it depends on the images."""
        return None

    def pictures(self, machine: Any, image_shape: tuple[int, int]) -> Tensor:
        """The weights of every hidden unit as pictures, (N, H, W)."""
        weights: Tensor = machine.parameters["weights.0"].T
        return weights.unflatten(1, image_shape)


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
class Spec:
    """The machine of a prior: the same keys in a recipe's [prior] and in a header.

    Attributes:
        family: a key of `FAMILIES`.
        hidden: number of hidden units; of the layer next to the image for a deep machine, of each component for a
            mixture, of features per position for a convolutional machine, 0 without hidden units. A recipe may leave
            it to growth, "auto".
        visible, hidden_type: unit types, keys of `UNITS`.
        deeper: numbers of units of further hidden layers.
        components: number of Gaussians of a mixture.
        kernel: side, in pixels, of the square window of a convolutional feature.
        layers: the layers of a deep convolutional machine, that next to the image first.

    >>> spec = Spec(hidden=100)
    >>> spec.check()
    >>> spec.kind.words, spec.grey, spec.misfit("exact") == ""
    ('restricted Boltzmann machine', False, False)
    """

    hidden: int | Literal["auto"] = 0
    family: str = "rbm"
    visible: str = "bernoulli"
    hidden_type: str = "bernoulli"
    deeper: tuple[int, ...] = ()
    components: int = 0
    kernel: int = 0
    layers: tuple[Features, ...] = ()

    @property
    def kind(self) -> Family:
        """The family of the machine."""
        return FAMILIES[self.family]

    @property
    def alone(self) -> Spec:
        """The machine without the further keys of a recipe or a header."""
        return Spec(**{entry.name: getattr(self, entry.name) for entry in fields(Spec)})

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
    def solvers(self) -> tuple[str, ...]:
        """The solvers that fit the machine."""
        return tuple(name for name in SOLVERS if not self.misfit(name))

    def misfit(self, solver: str) -> str:
        """The reason why a solver does not fit the machine; empty if it does."""
        known, structure = SOLVERS[solver], self.kind.structure
        if structure not in known.structures:
            others = ", ".join(other for other in SOLVERS if structure in SOLVERS[other].structures)
            return f"{solver} does not solve a {structure} machine; take {others}"
        return "" if known.any_units or self.plain else f"{solver} is for binary units in two layers; take tap"

    def task_of(self, text: str, mask: str | None = None) -> Task:
        """The damage that a text such as "flip:0.1" names, for images of this kind; see `parse_task`."""
        return parse_task(text, mask, grey=self.grey)

    def in_words(self, error: float) -> str:
        """Name of the error that `restore.learning.course` measures."""
        return f"a mean squared error of {error:.5f}" if self.grey else f"{error:.3%} wrong pixels"

    def check(self, image_shape: tuple[int, int] | None = None) -> None:
        """Raise UsageError for an impossible machine, for images (H, W) if these are known."""
        if self.family not in FAMILIES:
            raise UsageError(f"family must be one of {', '.join(FAMILIES)}, not {self.family!r}")
        self.kind.check(self, image_shape)


class Restricted(Family):
    words = "restricted Boltzmann machine"
    pixels = PIXEL_UNITS
    hiddens = tuple(UNITS)
    grows = True
    continues = True


class Deep(Family):
    words = "deep Boltzmann machine"
    pixels = PIXEL_UNITS
    hiddens = tuple(UNITS)
    special: ClassVar[Mapping[str, int]] = {"deeper": 1}
    continues = True


class AnySize(Family):
    """Machines with the same parameters at every position."""

    any_size = True
    continues = True

    def check(self, spec: Spec, image_shape: tuple[int, int] | None) -> None:
        super().check(spec, image_shape)
        if image_shape is not None and spec.kernel > min(image_shape):
            raise UsageError(f"kernel must be at most the smaller side of the images, not {spec.kernel}")

    def pixel_means(self, means: Tensor) -> Tensor:
        return means.mean().repeat(len(means))

    def spread(self, scale: float, shape: Sequence[int]) -> float:
        """The standard deviation of the first weights of a shape."""
        return scale

    def initial(
        self, spec: Spec, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> Any:
        """A machine with biases from the share of white, and normal weights."""
        import torch

        white = means.mean().reshape(1)
        # The log-odds of a unit of -1 or 1 are twice its field.
        first = {"units.0.bias": torch.logit(white) / 2, "units.0.centre": white}
        for name, shape in self.shapes(spec, image_shape).items():
            if name.startswith("weights"):
                drawn = torch.randn(shape, generator=generator, device=means.device)
                first[name] = drawn * self.spread(scale, shape)
            else:
                first.setdefault(name, means.new_zeros(shape))
        return self.machine(spec, image_shape, first)


class Convolutional(AnySize):
    words = "convolutional restricted Boltzmann machine"
    special: ClassVar[Mapping[str, int]] = {"kernel": 2}

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        height, width = image_shape
        assert spec.hidden != "auto"
        return height * width, (height + spec.kernel - 1) * (width + spec.kernel - 1) * spec.hidden

    def count(self, spec: Spec) -> str:
        return f"{spec.hidden} features of {spec.kernel}x{spec.kernel} pixels, the same at every place"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        assert spec.hidden != "auto"
        return {
            "weights.0": (spec.hidden, spec.kernel**2),
            "units.0.bias": (1,),
            "units.1.bias": (spec.hidden,),
        }

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> ConvolutionalRBM:
        from restore.priors import ConvolutionalRBM

        return ConvolutionalRBM.of({name: values[name] for name in self.shapes(spec, image_shape)}, image_shape)

    def of_size(self, machine: ConvolutionalRBM, image_shape: tuple[int, int]) -> ConvolutionalRBM:
        return machine.of(machine.shared, image_shape)

    def pictures(self, machine: ConvolutionalRBM, image_shape: tuple[int, int]) -> Tensor:
        from restore.priors.convolutional import squares

        return squares(machine.shared["weights.0"])


class DeepConvolutional(AnySize):
    words = "convolutional deep Boltzmann machine"
    by_layers = True
    # The types of features that stay bounded, by themselves or by their neighbours.
    features: ClassVar[Sequence[str]] = ("rectified", "spin", "truncated-gaussian")

    def check(self, spec: Spec, image_shape: tuple[int, int] | None) -> None:
        super().check(spec, image_shape)
        for layer in spec.layers:
            if min(layer[:-1]) < 1 or layer.side % (2 * layer.stride) != layer.stride:
                raise UsageError(
                    f"a layer is [number, side, stride, type], its side an odd multiple of its stride, not {[*layer]}"
                )
            if layer.units not in self.features:
                raise UsageError(f"the units of layers must be one of {', '.join(self.features)}, not {layer.units!r}")
        for below, above in pairwise(spec.layers):
            if below.units == above.units == "rectified":
                raise UsageError("two rectified layers in a row raise each other without bound; make one spin")

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        sizes, (rows, columns) = [image_shape[0] * image_shape[1]], image_shape
        for layer in spec.layers:
            rows, columns = -(-rows // layer.stride), -(-columns // layer.stride)
            sizes.append(rows * columns * layer.number)
        return tuple(sizes)

    def count(self, spec: Spec) -> str:
        layers = (f"{number} of {side}x{side}" + f" every {step}" * (step > 1) for number, side, step, _ in spec.layers)
        return f"features in {len(spec.layers)} layers: {', '.join(layers)}"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"units.0.bias": (1,), "units.0.centre": (1,)}
        channels = 1
        for index, (count, side, *_) in enumerate(spec.layers):
            shapes |= {f"weights.{index}": (count, channels, side, side), f"units.{index + 1}.bias": (count,)}
            channels = count
        return shapes

    def unit_kinds(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[str, ...]:
        return spec.visible, *(layer.units for layer in spec.layers)

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> ConvolutionalDBM:
        from restore.priors import ConvolutionalDBM

        own = {name: values[name] for name in self.shapes(spec, image_shape)}
        return ConvolutionalDBM.of(own, image_shape, [(layer.stride, layer.units) for layer in spec.layers])

    def of_size(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> ConvolutionalDBM:
        return machine.of(machine.shared, image_shape, machine.kinds)

    def spread(self, scale: float, shape: Sequence[int]) -> float:
        """Chosen so that fields start equally large for windows of any size."""
        return scale / math.prod(shape[1:]) ** 0.5

    def pictures(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> Tensor:
        return machine.shared["weights.0"].squeeze(1)


class Pairwise(Family):
    words = "fully visible Boltzmann machine"
    structure = "pairwise"
    hidden_units = False

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        return (image_shape[0] * image_shape[1],)

    def count(self, spec: Spec) -> str:
        return "no hidden units"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        (pixels,) = self.sizes(spec, image_shape)
        return super().shapes(spec, image_shape) | {"weights.0": (pixels, pixels)}

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> FullyVisible:
        from restore.priors import FullyVisible

        return FullyVisible.binary(values["weights.0"], values["units.0.bias"])

    def pictures(self, machine: FullyVisible, image_shape: tuple[int, int]) -> Tensor:
        return machine.weights.new_zeros(0, *image_shape)


class Conditional(Family):
    words = "conditional restricted Boltzmann machine"
    grows = True
    learnt = True

    def observation(self, spec: Spec) -> Observation:
        return "learnt"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        pixels, hidden = self.sizes(spec, image_shape)
        return super().shapes(spec, image_shape) | {"inputs.0": (pixels, pixels), "inputs.1": (hidden, pixels)}

    def joined(
        self, layers: tuple[Units, ...], couplings: tuple[Coupling, ...], values: Mapping[str, Tensor]
    ) -> ConditionalRBM:
        from restore.priors import RBM, ConditionalRBM

        return ConditionalRBM(RBM(layers, couplings), values["inputs.0"], values["inputs.1"])

    def check_machine(self, machine: ConditionalRBM) -> None:
        super().check_machine(machine.machine)

    def given(self, machine: ConditionalRBM, evidence: Fields) -> RBM:
        """The machine given the observed image, here in place of evidence."""
        return machine.given(evidence.linear)


class Mixture(Family):
    words = "mixture of Gaussians"
    structure = "mixture"
    pixels = hiddens = ("gaussian",)
    special: ClassVar[Mapping[str, int]] = {"components": 1}
    photographs = True

    def observation(self, spec: Spec) -> Observation:
        """Patches with the same noise and mask, which share work; without salt and pepper."""
        return "one noise and mask"

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        return (image_shape[0] * image_shape[1],)

    def count(self, spec: Spec) -> str:
        return f"{spec.components} times {spec.hidden} hidden units"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        (pixels,), count = self.sizes(spec, image_shape), spec.components
        assert spec.hidden != "auto"
        return {"weights.0": (pixels, count * spec.hidden), "units.noise": (count,), "units.log_share": (count,)}

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> GaussianMixture:
        from restore.priors import GaussianMixture

        return GaussianMixture.of(values)

    def check_machine(self, machine: GaussianMixture) -> None:
        if not bool((machine.noise > 0).all()):
            raise ValueError("a component has a variance that is not positive")


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "rbm": Restricted(),
        "crbm": Conditional(),
        "fvbm": Pairwise(),
        "deep": Deep(),
        "convolutional": Convolutional(),
        "deep_convolutional": DeepConvolutional(),
        "mixture": Mixture(),
    }
)
