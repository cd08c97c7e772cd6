"""Convolutional deep Boltzmann machines: layers of features, each coarser than the one below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from restore.errors import UsageError
from restore.families.convolutional import Uniform
from restore.registry import Learner

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.families.spec import Spec
    from restore.priors import ConvolutionalDBM


# How many steps from one place to the next make the side of a window.
WIDTH = 3


def stride_of(spec: Spec) -> int:
    """By how many places of the layer below features are apart."""
    return spec.kernel // WIDTH


class DeepConvolutional(Uniform):
    words = "convolutional deep Boltzmann machine"
    hiddens = ("rectified",)
    learners: ClassVar[Mapping[str, Learner]] = {"matched": Learner("restore.learning.rules.matched:MatchedMarginals")}
    special: ClassVar[Mapping[str, int]] = {"kernel": 3, "deeper": 1}

    def check(self, spec: Spec, image_shape: tuple[int, int] | None) -> None:
        super().check(spec, image_shape)
        if spec.kernel % WIDTH:
            raise UsageError(f"kernel of a {self.words} must be a multiple of {WIDTH}, not {spec.kernel}")

    def sizes(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[int, ...]:
        shapes = [image_shape]
        for _ in spec.hidden_counts:
            rows, columns = (-(-size // stride_of(spec)) for size in shapes[-1])
            shapes.append((rows, columns))
        channels = (1, *spec.hidden_counts)
        return tuple(rows * columns * count for (rows, columns), count in zip(shapes, channels, strict=True))

    def count(self, spec: Spec) -> str:
        above = "".join(f", {features} above them" for features in spec.deeper)
        return f"{spec.hidden} features of {spec.kernel}x{spec.kernel}{above}, {stride_of(spec)} places apart"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        channels, window = (1, *spec.hidden_counts), (spec.kernel, spec.kernel)
        couplings = enumerate(zip(channels[1:], channels, strict=False))
        shapes: dict[str, tuple[int, ...]] = {f"weights.{index}": (*pair, *window) for index, pair in couplings}
        shapes |= {f"units.{layer}.bias": (features,) for layer, features in enumerate(channels)}
        return shapes | {"units.0.centre": (1,)}

    def unit_kinds(self, spec: Spec, image_shape: tuple[int, int]) -> tuple[str, ...]:
        return spec.visible, spec.hidden_type, *["spin"] * len(spec.deeper)

    def machine(self, spec: Spec, image_shape: tuple[int, int], values: Mapping[str, Tensor]) -> ConvolutionalDBM:
        from restore.priors import ConvolutionalDBM

        own = {name: values[name] for name in self.shapes(spec, image_shape)}
        return ConvolutionalDBM.of(own, image_shape, stride_of(spec))

    def of_size(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> ConvolutionalDBM:
        return machine.of(machine.shared, image_shape, machine.lowest.stride)

    def hidden_in(self, spec: Spec, machine: ConvolutionalDBM) -> int:
        return len(machine.shared["weights.0"])

    def initial(
        self, spec: Spec, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> ConvolutionalDBM:
        """The machine of the share of white, with couplings from N(0, scale² / channels)."""
        import torch

        drawn: dict[str, Tensor] = {}
        for name, shape in self.shapes(spec, image_shape).items():
            if name.startswith("weights"):
                drawn[name] = torch.randn(shape, generator=generator, device=means.device) * scale / shape[1] ** 0.5
            else:
                drawn[name] = means.new_zeros(shape)
        # The log-odds of a unit of -1 or 1 are twice its field.
        drawn["units.0.bias"] = torch.logit(means.mean()).reshape(1) / 2
        drawn["units.0.centre"] = means.mean().reshape(1)
        return self.machine(spec, image_shape, drawn)

    def pictures(self, machine: ConvolutionalDBM, image_shape: tuple[int, int]) -> Tensor:
        return machine.shared["weights.0"].squeeze(1)
