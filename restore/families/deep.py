"""Deep Boltzmann machines: several layers of hidden units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from restore.families.family import Family
from restore.registry import PIXELS, UNITS, Learner

if TYPE_CHECKING:
    from torch import Tensor

    from restore.couplings import Coupling
    from restore.priors import LayeredPrior
    from restore.units import Units


class Deep(Family):
    words = "deep Boltzmann machine"
    learners: ClassVar[Mapping[str, Learner]] = {
        "tap": Learner("restore.learning.rules.tap_likelihood:TAPLikelihood"),
        "matched": Learner("restore.learning.rules.matched:MatchedMarginals"),
    }
    pixels = PIXELS
    hiddens = tuple(UNITS)
    special: ClassVar[Mapping[str, int]] = {"deeper": 1}
    continues = True

    def joined(
        self, layers: tuple[Units, ...], couplings: tuple[Coupling, ...], values: Mapping[str, Tensor]
    ) -> LayeredPrior:
        from restore.priors import LayeredPrior

        return LayeredPrior(layers, couplings)
