"""The contract of every learner.

A learner turns a mini-batch into a gradient of the log-likelihood (or of a substitute). Optimizer, order of the data,
checkpoints and logs belong to `restore.learning.loop`. All random numbers come from the generator passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import RBM, ConditionalRBM
from restore.zoo.inference import Inference

Gradient = dict[str, Tensor]
LearnerState = dict[str, Tensor]


class Pairs(NamedTuple):
    """A mini-batch for conditional priors: damaged images (batch, D) and the clean ones (batch, D)."""

    observed: Tensor
    clean: Tensor


class Restorations(NamedTuple):
    """A mini-batch of images under evidence, for unconditional priors that learn by restoring.

    Attributes:
        clean: what should come out, (batch, D).
        evidence: fields on the pixels, (batch, D) each.
        start: visible means to start from, (batch, D): the posterior means of independent pixels.
        tasks: the number of the task that damaged each image, (batch,).
    """

    clean: Tensor
    evidence: Fields
    start: Tensor
    tasks: Tensor


@dataclass(frozen=True)
class Step:
    """The result of one mini-batch, or of a first step on it.

    Attributes:
        gradient: direction of *ascent* per parameter, named and shaped as `prior.parameters`.
        state: the learner's state after the step: only tensors, so that a checkpoint can hold it.
        monitors: numbers for the log: zero-dimensional tensors, so that no step waits for the device.
        again: for learners that take several steps on a mini-batch: makes the next one from the prior after this one.
            Only the state and monitors of the last step count, so nothing between steps needs a checkpoint.
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


@dataclass(frozen=True)
class Round:
    """The result of one round over all images.

    Attributes:
        state: the state after the round: only tensors, so that a checkpoint can hold it. Their shapes may change.
        monitors: numbers for the log.
        verdict: why this round was the last, as a sentence for users; empty if it was not.
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

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """One round."""


class ConditionalLearner(Learner[ConditionalRBM, Pairs], Protocol):
    """A learner of conditional priors, which restore with the inference of their training."""

    def inference(self, epoch: int) -> Inference:
        """How a prior restores that was trained up to and including this epoch."""
