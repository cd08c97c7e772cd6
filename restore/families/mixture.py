"""Mixtures of Gaussians, for patches of photographs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from restore.families.family import Family, Observation
from restore.registry import Learner

if TYPE_CHECKING:
    from torch import Tensor

    from restore.families.spec import Spec
    from restore.priors import GaussianMixture


class Mixture(Family):
    words = "mixture of Gaussians"
    learners: ClassVar[Mapping[str, Learner]] = {
        "expectation_maximisation": Learner("restore.learning.rules.mixture:ExpectationMaximisation")
    }
    structure = "mixture"
    pixels = hiddens = ("gaussian",)
    special: ClassVar[Mapping[str, int]] = {"components": 1}
    photographs = True

    def observation(self, spec: Spec) -> Observation:
        """Patches of one noise and one mask, which share what is computed; salt and pepper are unknown to it."""
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

    def hidden_in(self, spec: Spec, machine: GaussianMixture) -> int:
        return super().hidden_in(spec, machine) // spec.components
