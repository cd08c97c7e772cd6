"""Learners that change a prior themselves, in rounds over all images.

Frank-Wolfe adds a unit per round, and block ascent sweeps over all couplings. Neither has a gradient for an optimizer,
so they do not go through `restore.learning.fit`. With several processes only the first works, and the others copy it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from restore.learning.loop import Lap, drive
from restore.learning.rules.contract import LearnerState
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import Stopped, set_generator
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Session
from restore.progress import Passed


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


@dataclass(frozen=True)
class Outcome:
    """The result of all rounds.

    Attributes:
        state: the state after them.
        rounds: how many there were.
        verdict: why no more followed; empty if it was the maximum number.
        complete: whether the learner ended them.
        changes: what changed between sittings, so that no recipe repeats the rounds exactly, in words.
    """

    state: LearnerState
    rounds: int
    verdict: str
    complete: bool
    changes: tuple[str, ...] = ()


@dataclass
class Rounds:
    """A learner in rounds, at work: see `restore.learning.loop.Work`.

    Attributes:
        learner: the learner.
        images: training images (N, D), on the device to train on.
        session: gives the budget.
        seed: seed of all randomness.
        needed: rounds for which there must be time.
        state, monitors: after the last round; no monitors just after a resume.
        verdict: why no more rounds follow; empty while they do.
        complete: whether the learner ended them.
        changes: as in `Outcome`.
    """

    learner: RoundLearner
    images: Tensor
    session: Session
    seed: int
    needed: int = 0
    state: LearnerState = field(default_factory=dict)
    monitors: Mapping[str, float] = field(default_factory=dict)
    done: int = 0
    seconds: float = 0.0
    verdict: str = ""
    complete: bool = False
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.images.device).manual_seed(self.seed)

    @property
    def place(self) -> str:
        return f"round {self.done}"

    @property
    def finished(self) -> bool:
        return bool(self.verdict) or self.done >= self.learner.rounds

    @property
    def judged(self) -> bool:
        return False

    def begin(self) -> None:
        self.state = from_first(lambda: self.learner.begin(self.images, self.generator))

    def restore(self, found: Checkpoint) -> str:
        facts = found.facts
        self.done, self.seconds, self.changes = found.step, facts["seconds"], list(facts.get("changes", []))
        self.verdict, self.complete = facts["verdict"], facts["complete"]
        self.state = {
            name.removeprefix("state."): value.to(self.images.device)
            for name, value in found.tensors.items()
            if name.startswith("state.")
        }
        return set_generator(self.generator, found, self.seed)

    def relimited(self) -> str:
        """A time limit decides when rounds end, and changes nothing in the rounds themselves."""
        return ""

    def changed(self, changes: Sequence[str]) -> None:
        self.changes += changes

    def plan(self) -> None:
        """Nothing to plan: the learner knows when it is finished."""

    def advance(self, elapsed: Callable[[], float]) -> Lap:
        result = from_first(partial(self.learner.advance, self.images, self.state, self.generator))
        self.state, self.monitors, self.verdict = result.state, result.monitors, result.verdict
        self.complete, self.done = bool(result.verdict), self.done + 1
        before, self.seconds = self.seconds, elapsed()
        self.verdict = self.verdict or self._out_of_time(before)
        record = {"round": self.done, "seconds": self.seconds, **result.monitors}
        return Lap(record, self.best())

    def _out_of_time(self, before: float) -> str:
        """Why no more rounds follow, if time is the reason; `before` is the time before the last round."""
        exceeded = self.session.exceeded
        said = ""
        if exceeded(2 * self.seconds - before) and self.done < self.learner.rounds:
            said = f"time ran out after {self.done} rounds"
        # The first round takes up to twice as long as the second.
        pace = (self.seconds - before) / (2 if self.done == 1 else 1)
        if self.done <= min(2, self.needed) and exceeded(self.seconds + (self.needed - self.done) * pace):
            said = said or f"there was no time for {self.needed} rounds, so round {self.done} was the last"
        return said

    def best(self) -> Passed:
        return Passed(self.done, self.learner.rounds, self.seconds, self.monitors, self.state)

    def snapshot(self, identity: Mapping[str, Any]) -> Checkpoint:
        tensors = {f"state.{name}": value for name, value in self.state.items()}
        tensors["generator"] = self.generator.get_state()
        facts = {"identity": dict(identity), "seconds": self.seconds, "verdict": self.verdict}
        return Checkpoint(self.done, tensors, facts | {"complete": self.complete, "changes": self.changes})


def run_rounds(
    learner: RoundLearner,
    images: Tensor,
    session: Session,
    *,
    seed: int,
    facts: Mapping[str, Any],
    checkpoint_every: int = 1,
    needed: int = 0,
) -> Outcome:
    """Run a learner until it ends, or to its last round.

    Args:
        learner: the learner.
        images: training images (N, D), on the device to train on.
        session: where, and who is told: the reported machine is the learner's state. No round begins that would not end
            in time if it took as long as the one before.
        seed: seed of all randomness.
        facts: the parts of the recipe that decide the outcome; a run cannot be resumed under others.
        checkpoint_every: rounds between two checkpoints.
        needed: rounds for which there must be time; if the first two show that there is not, no more follow.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or the learner's own error.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    work = Rounds(learner, images, session, seed, needed)
    stop = drive(work, session, facts, checkpoint_every)
    # Also after the last round: what follows may take as long as the rounds.
    if stop:
        raise Stopped(stop)
    state = {name: value.to(images.device) for name, value in work.state.items()}
    return Outcome(state, work.done, work.verdict, work.complete, tuple(work.changes))
