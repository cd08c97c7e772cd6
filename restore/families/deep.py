"""Deep Boltzmann machines: several layers of hidden units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from restore.families.family import Family
from restore.registry import PIXELS, UNITS, Learner


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
