"""Restricted Boltzmann machines: one layer of hidden units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from restore.families.family import Family
from restore.registry import PIXELS, UNITS, Learner, Offer

RULES = "restore.learning.rules"


class Restricted(Family):
    words = "restricted Boltzmann machine"
    learners: ClassVar[Mapping[str, Learner]] = {
        "tap": Learner(
            f"{RULES}.tap_likelihood:TAPLikelihood", {"tap": Offer({"starts": "redrawn"}, levels=("binary", "grey"))}
        ),
        "matched": Learner(f"{RULES}.matched:MatchedMarginals"),
        "contrastive": Learner(
            f"{RULES}.contrastive:ContrastiveDivergence",
            {"pcd": Offer({"starts": "persistent"}), "cd": Offer({"steps": 10})},
        ),
        "spectral": Learner(f"{RULES}.spectral:SpectralDescent"),
        "frank_wolfe": Learner(f"{RULES}.frank_wolfe:FrankWolfe", {"fw": Offer()}),
        "principal": Learner(f"{RULES}.principal:Principal", {"principal": Offer(levels=("grey",))}),
    }
    pixels = PIXELS
    hiddens = tuple(UNITS)
    grows = True
    continues = True
