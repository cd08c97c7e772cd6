"""What a recipe has to know of a learner, and asks the learner itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Tensor

from restore.learning.recipes.tables import PriorShape, require
from restore.learning.rounds import RoundLearner
from restore.priors import RBM, FullyVisible


class LearningRule:
    """Base of the settings of every learner that recipes name; most have these answers.

    Attributes:
        in_rounds: whether it changes the prior itself, in rounds over all images; then it has no optimizer, no epochs.
        any_units: whether it trains machines of any units in any number of layers; if not, of bits in two layers.
        restores_with: entries of [inference] that its priors have unless a recipe says otherwise.
    """

    in_rounds: ClassVar[bool] = False
    any_units: ClassVar[bool] = False
    restores_with: ClassVar[Mapping[str, Any]] = {}

    def check(self, prior: PriorShape) -> None:
        """Refuse what it cannot train.

        Raises:
            UsageError: naming table and key.
        """
        scale = prior.weight_scale
        require(0 < scale < math.inf, f"[prior] weight_scale must be positive, not {scale}")
        require(
            prior.binary or not prior.grows,
            '[prior] hidden = "auto" grows binary units, or counts components of principal; give a number',
        )

    def most(self, prior: PriorShape, epochs: int) -> int:
        """Epochs, or rounds at most."""
        return epochs

    def settled(self, prior: PriorShape, passes: int) -> tuple[Self, PriorShape]:
        """Settings and prior with which a run ends where it has ended, after so many epochs or rounds."""
        return self, prior


class InRounds(LearningRule, ABC):
    """Base of the settings of learners that work in rounds."""

    in_rounds: ClassVar[bool] = True
    # Whether its rounds add hidden units, which another learner may go on from.
    grows: ClassVar[bool] = False

    @abstractmethod
    def at_work(self, prior: PriorShape, validation: Tensor) -> RoundLearner:
        """What does the rounds; `validation` are images held out, (M, D), M may be 0."""

    @abstractmethod
    def machine(self, state: Mapping[str, Tensor]) -> RBM | FullyVisible:
        """The machine that it has come to, in single precision."""

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        """What there is to say where so many rounds, the most there may be, were not enough; nothing by default."""
        return ""
