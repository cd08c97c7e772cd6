"""The contract of every learner.

A learner turns a mini-batch into a gradient of the log-likelihood (or of what it takes for it). Optimizer, order of the
data, checkpoints and logs belong to `restore.learning.fit`; every random number comes from the generator passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from restore.priors import RBM, ConditionalRBM
from restore.zoo.description import Inference

Gradient = dict[str, Tensor]
LearnerState = dict[str, Tensor]


class Pairs(NamedTuple):
    """A mini-batch for conditional priors: damaged images (batch, D) and the clean ones (batch, D)."""

    observed: Tensor
    clean: Tensor


@dataclass(frozen=True)
class Step:
    """What one mini-batch gave, or the first part of it.

    Attributes:
        gradient: direction of *ascent* per parameter, named and shaped as `prior.parameters`.
        state: the learner's state after the step; tensors only, so that a checkpoint can hold it.
        monitors: numbers worth logging; zero-dimensional tensors, so that no step waits for the device.
        again: for learners that take several steps on a mini-batch: the next of them, given the prior as it is after
            this one. Only what the last step of a mini-batch says of state and monitors counts, so that nothing
            between them needs to be in a checkpoint.
    """

    gradient: Gradient
    state: LearnerState
    monitors: Mapping[str, Tensor]
    again: Callable[[Any], Step] | None = None


PriorT = TypeVar("PriorT", RBM, ConditionalRBM, contravariant=True)
BatchT = TypeVar("BatchT", Tensor, Pairs, contravariant=True)


class Learner(Protocol[PriorT, BatchT]):
    """Frozen settings of a learning rule."""

    def init(self, prior: PriorT, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first step, given all training images (N, D)."""

    def step(self, prior: PriorT, batch: BatchT, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        """Gradient of one mini-batch; `epoch` counts the passes over the data so far, from 0."""


class ConditionalLearner(Learner[ConditionalRBM, Pairs], Protocol):
    """A learner of conditional priors; what it learns restores by the inference it was learnt with."""

    def inference(self, epoch: int) -> Inference:
        """How a prior restores that has been trained up to and including this epoch."""
