"""Learners that change a prior themselves, in rounds over all images.

Frank-Wolfe adds a unit per round, and block ascent sweeps over all couplings. Neither has a gradient for an optimizer,
so they do not go through `restore.learning.fit`. With several processes only the first works, and the others copy it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from restore.learning.loop import Lap, drive
from restore.learning.rules.contract import LearnerState
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import set_generator
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Passed, Session


@dataclass(frozen=True)
class Round:
    """The result of one round.

    Attributes:
        state: the state after the round: only tensors, so that a checkpoint can hold it. Their shapes may change.
        monitors: numbers for the log.
        verdict: why this round was the last, as a sentence for users; empty if it was not.
    """

    state: LearnerState
    monitors: Mapping[str, float]
    verdict: str = ""


class RoundLearner(Protocol):
    """A learner that changes the parameters itself; it holds only settings."""

    @property
    def rounds(self) -> int:
        """The most rounds."""

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first round, given all training images (N, D)."""

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """One round."""


@dataclass
class Rounds:
    """A learner in rounds, at work: see `restore.learning.loop.Work`.

    Attributes:
        learner: the learner.
        images: training images (N, D), on the device to train on.
        session: gives the time.
        seed: seed of all randomness.
        every: rounds between two checkpoints.
        state, monitors: after the last round; no monitors just after a resume.
        done: rounds so far.
        verdict: why the learner does no more rounds; empty while it does.
        began: seconds used when the rounds began.
        pace: seconds that the last round took.
    """

    learner: RoundLearner
    images: Tensor
    session: Session
    seed: int
    every: int = 1
    state: LearnerState = field(default_factory=dict)
    monitors: Mapping[str, float] = field(default_factory=dict)
    done: int = 0
    verdict: str = ""
    began: float = 0.0
    pace: float = 0.0

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.images.device).manual_seed(self.seed)

    @property
    def progress(self) -> float:
        """The share of rounds or time that is used if another round takes as long as the last."""
        return self.session.progress(self.done / self.learner.rounds, self.began, self.pace)

    @property
    def finished(self) -> bool:
        return bool(self.verdict) or (self.progress >= 1 and self.done > 0)

    @property
    def judged(self) -> bool:
        return False

    def begin(self) -> None:
        self.began = self.session.clock.used
        self.state = from_first(lambda: self.learner.begin(self.images, self.generator))

    def restore(self, found: Checkpoint) -> str:
        self.done = found.step
        self.began, self.pace, self.verdict = (found.facts[name] for name in ("began", "pace", "verdict"))
        self.state = {
            name.removeprefix("state."): value.to(self.images.device)
            for name, value in found.tensors.items()
            if name.startswith("state.")
        }
        return set_generator(self.generator, found, self.seed)

    def advance(self) -> Lap:
        before = self.session.clock.used
        result = from_first(partial(self.learner.advance, self.images, self.state, self.generator))
        self.state, self.monitors, self.verdict = result.state, result.monitors, result.verdict
        self.done += 1
        used = self.session.clock.used
        self.pace = used - before
        record = {"round": self.done, "seconds": used, **result.monitors}
        return Lap(record, self.best(), best=False, keep=self.done % self.every == 0)

    def best(self) -> Passed:
        used = self.session.clock.used
        return Passed(self.done, self.learner.rounds, self.progress, used, self.monitors, self.state)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        tensors = {f"state.{name}": value for name, value in self.state.items()}
        tensors["generator"] = self.generator.get_state()
        own = {"began": self.began, "pace": self.pace, "verdict": self.verdict}
        return Checkpoint(self.done, tensors, {**facts, **own})


def run_rounds(
    learner: RoundLearner, images: Tensor, session: Session, *, seed: int, facts: Mapping[str, Any], every: int = 1
) -> Rounds:
    """Run a learner until it ends, to its last round, or until there is no time for another.

    Args:
        learner: the learner.
        images: training images (N, D), on the device to train on.
        session: where, who is told, and how long it may take: the reported machine is the learner's state.
        seed: seed of all randomness.
        facts: the parts of the recipe that decide the outcome; a run cannot be resumed under others.
        every: rounds between two checkpoints.

    Returns:
        The learner after its rounds.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or the learner's own error.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    work = Rounds(learner, images, session, seed, every)
    drive(work, session, facts)
    # What the first process made may be on its device.
    work.state = {name: value.to(images.device) for name, value in work.state.items()}
    return work
