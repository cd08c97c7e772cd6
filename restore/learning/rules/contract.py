"""The contract of every learner, and what a recipe asks it.

A learner turns a mini-batch into a gradient of the log-likelihood (or of a substitute). Optimizer, order of the data,
checkpoints and logs belong to `restore.learning.loop`. All random numbers come from the generator passed in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor

from restore.errors import require
from restore.fields import Fields
from restore.learning.recipe.spec import PriorShape
from restore.priors import RBM, ConditionalRBM, FullyVisible, GaussianMixture

Gradient = dict[str, Tensor]
LearnerState = dict[str, Tensor]


class Pairs(NamedTuple):
    """A mini-batch for conditional priors: damaged images (batch, D) and the clean ones (batch, D)."""

    observed: Tensor
    clean: Tensor


class Restorations(NamedTuple):
    """A mini-batch of images under evidence, for unconditional priors that learn by restoring.

    `clean` should come out, (batch, D), of fields on the pixels; solvers start at the posterior means of independent
    pixels. Each image was damaged by the task of a number, (batch,).
    """

    clean: Tensor
    evidence: Fields
    start: Tensor
    tasks: Tensor


@dataclass(frozen=True)
class Step:
    """The result of one mini-batch, or of a first step on it.

    The gradient is a direction of *ascent*, named and shaped as `prior.parameters`. A checkpoint holds the state, and
    the log the monitors, zero-dimensional tensors, so that no step waits for the device. `again` makes the next step on
    the same mini-batch from the prior after this one; only the last step's state and monitors count.
    """

    gradient: Gradient
    state: LearnerState
    monitors: Mapping[str, Tensor]
    again: Callable[[Any], Step] | None = None


PriorT = TypeVar("PriorT", RBM, ConditionalRBM, contravariant=True)
BatchT = TypeVar("BatchT", Tensor, Pairs, Restorations, contravariant=True)


class Learner(Protocol[PriorT, BatchT]):
    """A learning rule, as frozen settings."""

    def init(self, prior: PriorT, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first step, given all training images (N, D)."""

    def step(self, prior: PriorT, batch: BatchT, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        """The gradient of one mini-batch; `epoch` counts the passes over the data so far, from 0."""

    def direction(self, gradient: Gradient) -> Gradient:
        """The direction for the optimizer, given the mean gradient of a mini-batch."""

    def divided(self, parts: int) -> Self:
        """The rule with 1/`parts` of the chains or solutions that it keeps between steps."""


@dataclass(frozen=True)
class Round:
    """The result of one round over all images: the new state, whose shapes may change, and numbers for the log.

    The `verdict` says why this round was the last; it is empty if it was not.
    """

    state: LearnerState
    monitors: Mapping[str, float]
    verdict: str = ""


class RoundLearner(Protocol):
    """A learner that changes the parameters itself, in rounds; it holds only settings."""

    @property
    def rounds(self) -> int:
        """The most rounds."""

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first round, given all training images (N, D)."""

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round: ...


class LearningRule:
    """Base of every learner that recipes name, with the usual answers.

    It changes the prior itself, without optimizer and epochs, if `in_rounds`, and trains only bits in two layers unless
    `any_units`. Priors that learn from windows of larger images restore those in tiles with this `tile_overlap`.
    """

    in_rounds: ClassVar[bool] = False
    any_units: ClassVar[bool] = False
    tile_overlap: ClassVar[int] = 2

    @property
    def restores_with(self) -> Mapping[str, Any]:
        """Entries of [inference] that its priors have unless a recipe says otherwise."""
        return {}

    @property
    def restores(self) -> tuple[str, ...]:
        """The texts of the tasks under whose evidence it sees images; none if it sees them clean."""
        return ()

    def direction(self, gradient: Gradient) -> Gradient:
        return gradient

    def divided(self, parts: int) -> Self:
        return self

    def check(self, prior: PriorShape) -> None:
        """Refuse a prior that it cannot train, with a UsageError that names table and key."""
        scale = prior.weight_scale
        require(0 < scale < math.inf, f"[prior] weight_scale must be positive, not {scale}")
        require(
            prior.binary or not prior.grows,
            '[prior] hidden = "auto" is for binary units and for method = "principal"; give a number',
        )


class InRounds(LearningRule, ABC):
    """Base of learners that work in rounds. If a learner `grows`, another one may continue from its prior."""

    in_rounds: ClassVar[bool] = True
    # True if its rounds add hidden units, from which another learner may continue.
    grows: ClassVar[bool] = False

    @abstractmethod
    def at_work(self, prior: PriorShape, validation: Tensor) -> RoundLearner:
        """The object that does the rounds; `validation` are held-out images, (M, D), M may be 0."""

    @abstractmethod
    def machine(self, state: Mapping[str, Tensor]) -> RBM | FullyVisible | GaussianMixture:
        """The machine of a state, in single precision."""

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        """The message if the maximum number of rounds was not enough; empty by default."""
        return ""
