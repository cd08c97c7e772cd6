"""What a recipe must know about a learner, and asks it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from restore.learning.recipe.spec import PriorShape, require
from restore.learning.rules.contract import RoundLearner
from restore.priors import RBM, FullyVisible, GaussianMixture
from restore.zoo.tiling import OF_WINDOWS, Tiling


class LearningRule:
    """Base of every learner that recipes name, with the usual answers.

    Attributes:
        in_rounds: whether it changes the prior itself, in rounds over all images, without optimizer and epochs.
        any_units: whether it trains machines of any units in any number of layers; if not, only bits in two layers.
        windows: how priors that learn from windows of larger images restore those.
    """

    in_rounds: ClassVar[bool] = False
    any_units: ClassVar[bool] = False
    windows: ClassVar[Tiling] = OF_WINDOWS

    @property
    def restores_with(self) -> Mapping[str, Any]:
        """Entries of [inference] that its priors have unless a recipe says otherwise."""
        return {}

    @property
    def restores(self) -> tuple[str, ...]:
        """The texts of the tasks under whose evidence it sees images; none if it sees them clean."""
        return ()

    def check(self, prior: PriorShape) -> None:
        """Refuse a prior that it cannot train, with a UsageError that names table and key."""
        scale = prior.weight_scale
        require(0 < scale < math.inf, f"[prior] weight_scale must be positive, not {scale}")
        require(
            prior.binary or not prior.grows,
            '[prior] hidden = "auto" grows binary units, or counts components of principal; give a number',
        )

    def most(self, prior: PriorShape, epochs: int) -> int:
        """The number of epochs, or the most rounds."""
        return epochs


class InRounds(LearningRule, ABC):
    """Base of learners that work in rounds."""

    in_rounds: ClassVar[bool] = True
    # Whether its rounds add hidden units, from which another learner may continue.
    grows: ClassVar[bool] = False

    @abstractmethod
    def at_work(self, prior: PriorShape, validation: Tensor) -> RoundLearner:
        """The object that does the rounds; `validation` are held-out images, (M, D), M may be 0."""

    @abstractmethod
    def machine(self, state: Mapping[str, Tensor]) -> RBM | FullyVisible | GaussianMixture:
        """The machine of a state, in single precision."""

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        """What to say if the maximum number of rounds was not enough; nothing by default."""
        return ""
