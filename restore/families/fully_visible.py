"""Fully visible Boltzmann machines: pixels coupled with each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from restore.families.family import Family
from restore.registry import Learner, Offer

if TYPE_CHECKING:
    from torch import Tensor

    from restore.families.spec import Spec
    from restore.priors import FullyVisible

RULES = "restore.learning.rules.bslm"


class Pairs(Family):
    words = "fully visible Boltzmann machine"
    learners: ClassVar[Mapping[str, Learner]] = {
        "bslm": Learner(f"{RULES}:BSLM"),
        "gradient_ascent": Learner(f"{RULES}:GradientAscent"),
        "quasi_newton": Learner(
            f"{RULES}:QuasiNewton", {"fvbm": Offer({"precision": "float32", "steps": 60, "rounds": 2})}
        ),
    }
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

    def hidden_in(self, spec: Spec, machine: FullyVisible) -> int:
        return 0

    def pictures(self, machine: FullyVisible, image_shape: tuple[int, int]) -> Tensor:
        return machine.weights.new_zeros(0, *image_shape)
