"""Convolutional restricted Boltzmann machines: hidden features that are the same at every place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from restore.errors import UsageError
from restore.families.family import Family
from restore.registry import Learner, Offer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.families.spec import Spec
    from restore.priors import ConvolutionalRBM


class Uniform(Family):
    """Machines to which all places are alike."""

    any_size = True
    # Parts that it knows alike tell each other nothing.
    tiling: ClassVar[Mapping[str, Any]] = {"overlap": 2, "rounds": 1, "worth": 0.0, "least": 0.0}

    def check(self, spec: Spec, image_shape: tuple[int, int] | None) -> None:
        super().check(spec, image_shape)
        if image_shape is not None and spec.kernel > min(image_shape):
            raise UsageError(f"kernel must be at most the smaller side of the images, not {spec.kernel}")

    def pixel_means(self, means: Tensor) -> Tensor:
        return means.mean().repeat(len(means))


class Convolutional(Uniform):
    words = "convolutional restricted Boltzmann machine"
    learners: ClassVar[Mapping[str, Learner]] = {
        "matched": Learner("restore.learning.rules.matched:MatchedMarginals", {"convolutional": Offer()})
    }
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

    def hidden_in(self, spec: Spec, machine: ConvolutionalRBM) -> int:
        return len(machine.shared["weights.0"])

    def initial(
        self, spec: Spec, image_shape: tuple[int, int], means: Tensor, scale: float, generator: torch.Generator
    ) -> ConvolutionalRBM:
        """The machine of the share of white, with features from N(0, scale²)."""
        import torch

        assert spec.hidden != "auto"
        drawn = torch.randn(spec.hidden, spec.kernel**2, generator=generator, device=means.device) * scale
        white = torch.logit(means.mean()).reshape(1)
        # The log-odds of a unit of -1 or 1 are twice its field.
        biases = {"units.0.bias": white / 2, "units.1.bias": means.new_zeros(spec.hidden)}
        return self.machine(spec, image_shape, {"weights.0": drawn, **biases})

    def pictures(self, machine: ConvolutionalRBM, image_shape: tuple[int, int]) -> Tensor:
        from restore.priors.convolutional import squares

        return squares(machine.shared["weights.0"])
