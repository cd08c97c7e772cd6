"""The families of priors. A new one is a class here and an entry of `FAMILIES`."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from restore.channels.views import ODDS_VIEWS, SIDE, VIEWS
from restore.errors import UsageError
from restore.families.family import Family, Keys
from restore.registry import PIXEL_UNITS, UNITS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.couplings import Coupling
    from restore.fields import Fields
    from restore.priors import RBM, ConditionalDBM, ConditionalRBM, ConvolutionalDBM, FullyVisible, GaussianMixture
    from restore.units import Units


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


class Convolutional(Family):
    """Machines with the same parameters at every position."""

    words = "convolutional deep Boltzmann machine"
    any_size = True
    continues = True
    by_layers = True
    # The types of features that stay bounded, by themselves or by their neighbours.
    features: ClassVar[Sequence[str]] = ("rectified", "spin", "truncated-gaussian")

    def check(self, spec: Keys, image_shape: tuple[int, int] | None) -> None:
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

    def sizes(self, spec: Keys, image_shape: tuple[int, int]) -> tuple[int, ...]:
        sizes = [image_shape[0] * image_shape[1]]
        (rows, columns) = image_shape
        for layer in spec.layers:
            rows, columns = -(-rows // layer.stride), -(-columns // layer.stride)
            sizes.append(rows * columns * layer.number)
        return tuple(sizes)

    def count(self, spec: Keys) -> str:
        layers = (f"{number} of {side}x{side}" + f" every {step}" * (step > 1) for number, side, step, _ in spec.layers)
        return f"features in {len(spec.layers)} layers: {', '.join(layers)}"

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"units.0.bias": (1,), "units.0.centre": (1,)}
        channels = 1
        for index, (count, side, *_) in enumerate(spec.layers):
            shapes |= {f"weights.{index}": (count, channels, side, side), f"units.{index + 1}.bias": (count,)}
            channels = count
        return shapes

    def unit_kinds(self, spec: Keys, image_shape: tuple[int, int]) -> tuple[str, ...]:
        return spec.visible, *(layer.units for layer in spec.layers)

    def machine(self, spec: Keys, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> ConvolutionalDBM:
        from restore.priors import ConvolutionalDBM

        parameters = {name: values[name] for name in self.shapes(spec, image_shape)}
        return ConvolutionalDBM.of(parameters, image_shape, [(layer.stride, layer.units) for layer in spec.layers])

    def of_size(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> ConvolutionalDBM:
        return machine.of(machine.shared, image_shape, machine.kinds)

    def pixel_means(self, means: Tensor) -> Tensor:
        return means.mean().repeat(len(means))

    def initial(
        self, spec: Keys, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> Any:
        """A machine with biases from the share of white, and normal weights.

        Their spread is chosen so that fields start equally large for windows of any size.
        """
        import torch

        white = means.mean().reshape(1)
        # The log-odds of a unit of -1 or 1 are twice its field.
        first = {"units.0.bias": torch.logit(white) / 2, "units.0.centre": white}
        for name, shape in self.shapes(spec, image_shape).items():
            if not name.startswith("units"):
                drawn = torch.randn(shape, generator=generator, device=means.device)
                first[name] = drawn * (scale / math.prod(shape[1:]) ** 0.5)
            else:
                first.setdefault(name, means.new_zeros(shape))
        return self.machine(spec, image_shape, first)

    def pictures(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> Tensor:
        return machine.shared["weights.0"].squeeze(1)


class Informed(Convolutional):
    """Machines whose finest layers, at the step of the first, also see the damaged image by kernels of their own."""

    words = "informed convolutional deep Boltzmann machine"
    # What a layer sees of the image at each pixel.
    views = ODDS_VIEWS

    # The coarsest step at which a first layer may see the image: its blocks of 2x2 pixels are channels.
    coarsest = 2

    def check(self, spec: Keys, image_shape: tuple[int, int] | None) -> None:
        super().check(spec, image_shape)
        if (step := spec.layers[0].stride) > self.coarsest:
            raise UsageError(f"the stride of the first layer of a {self.words} is at most {self.coarsest}, not {step}")

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        steps = accumulate((layer.stride for layer in spec.layers), operator.mul)
        first = spec.layers[0].stride
        return super().shapes(spec, image_shape) | {
            f"inputs.{index}": (layer.number, self.views, SIDE * first, SIDE * first)
            for index, (layer, step) in enumerate(zip(spec.layers, steps, strict=True), 1)
            if step == first
        }


class ConditionalPages(Informed):
    """Machines of the ink of a grey page: the fields of the ink, and of layers as fine, depend on the page."""

    words = "conditional convolutional machine"
    observed = "page and mask"
    pages = True
    views = VIEWS

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        return super().shapes(spec, image_shape) | {"inputs.0": (1, VIEWS, SIDE, SIDE)}

    def machine(self, spec: Keys, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> ConditionalDBM:
        from restore.priors import ConditionalDBM

        parameters = {name: values[name] for name in self.shapes(spec, image_shape)}
        return ConditionalDBM.of(parameters, image_shape, [(layer.stride, layer.units) for layer in spec.layers])


class Pairwise(Family):
    words = "fully visible Boltzmann machine"
    structure = "pairwise"
    hidden_units = False

    def count(self, spec: Keys) -> str:
        return "no hidden units"

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        (pixels,) = self.sizes(spec, image_shape)
        return super().shapes(spec, image_shape) | {"weights.0": (pixels, pixels)}

    def machine(self, spec: Keys, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> FullyVisible:
        from restore.priors import FullyVisible

        return FullyVisible.binary(values["weights.0"], values["units.0.bias"])

    def pictures(self, machine: FullyVisible, image_shape: tuple[int, int]) -> Tensor:
        return machine.weights.new_zeros(0, *image_shape)


class Conditional(Family):
    words = "conditional restricted Boltzmann machine"
    observed = "learnt"
    grows = True
    learnt = True

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
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
    observed = "one noise and mask"  # patches with the same ones share work; without salt and pepper
    structure = "mixture"
    pixels = hiddens = ("gaussian",)
    special: ClassVar[Mapping[str, int]] = {"components": 1}
    photographs = True

    def count(self, spec: Keys) -> str:
        return f"{spec.components} times {spec.hidden} hidden units"

    def shapes(self, spec: Keys, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        (pixels,) = self.sizes(spec, image_shape)
        count = spec.components
        assert spec.hidden != "auto"
        return {"weights.0": (pixels, count * spec.hidden), "units.noise": (count,), "units.log_share": (count,)}

    def machine(self, spec: Keys, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> GaussianMixture:
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
        "deep_convolutional": Convolutional(),
        "informed_convolutional": Informed(),
        "conditional_convolutional": ConditionalPages(),
        "mixture": Mixture(),
    }
)
