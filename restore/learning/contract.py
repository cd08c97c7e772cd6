"""The contract of every learner.

A learner turns a mini-batch into a gradient of the log-likelihood (or of what it takes for it). Optimizer, order of the
data, checkpoints and logs belong to `restore.learning.fit`; every random number comes from the generator passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from restore.priors import RBM

Gradient = dict[str, Tensor]
LearnerState = dict[str, Tensor]


@dataclass(frozen=True)
class Step:
    """What one mini-batch gave.

    Attributes:
        gradient: direction of *ascent* per parameter, named and shaped as `prior.parameters`.
        state: the learner's state after the step; tensors only, so that a checkpoint can hold it.
        monitors: numbers worth logging; zero-dimensional tensors, so that no step waits for the device.
    """

    gradient: Gradient
    state: LearnerState
    monitors: Mapping[str, Tensor]


class Learner(Protocol):
    """Frozen settings of a learning rule."""

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first step, given all training images (N, D)."""

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator) -> Step:
        """Gradient of one mini-batch (batch, D)."""
