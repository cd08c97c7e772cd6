"""Training in rounds over all images, by learners that change a prior themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from restore.learning.loop import Lap
from restore.learning.rules.contract import LearnerState, RoundLearner
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import set_generator
from restore.learning.run.parallel import from_first, highest
from restore.learning.run.session import Progress, Session

if TYPE_CHECKING:
    from restore.learning.rules.contract import InRounds


@dataclass
class RoundsState:
    """All that decides the next round.

    Attributes:
        step: the rounds done.
        state: that of the learner.
        began, pace: seconds used when the rounds began, and those of the last one.
        verdict: why the last round was the last; empty if it was not.
    """

    state: LearnerState
    generator: torch.Generator
    began: float
    pace: float = 0.0
    verdict: str = ""
    step: int = 0


class Rounds:
    """A learner that changes a prior itself, in rounds over all images: it has no gradient for an optimizer.

    With several processes only the first works, and the others copy it.
    """

    state: RoundsState
    judged = False

    def __init__(
        self, rule: InRounds, learner: RoundLearner, images: Tensor, session: Session, *, seed: int, every: int = 1
    ) -> None:
        self.rule, self.learner, self.images, self.session = rule, learner, images, session
        self.seed, self.every = seed, every
        self.monitors: Mapping[str, float] = {}

    @property
    def done(self) -> int:
        return self.state.step

    @property
    def progress(self) -> float:
        """The share of rounds or time that is used if another round takes as long as the last."""
        return self.session.progress(self.done / self.learner.rounds, self.state.began, self.state.pace)

    @property
    def finished(self) -> bool:
        return bool(self.state.verdict) or (self.progress >= 1 and self.done > 0)

    @property
    def ended(self) -> str:
        late = f"time ran out after {self.done} rounds" if self.done < self.learner.rounds else ""
        return self.state.verdict or late

    def begin(self) -> None:
        began = highest(self.session.clock.used)
        generator = torch.Generator(self.images.device).manual_seed(self.seed)
        state = from_first(lambda: self.learner.begin(self.images, generator))
        self.state = RoundsState(state, generator, began)

    def restore(self, checkpoint: Checkpoint) -> str:
        device = self.images.device
        blank = RoundsState({}, torch.Generator(device).manual_seed(self.seed), 0.0)
        self.state = checkpoints.set_state(blank, checkpoint, device)
        return set_generator(self.state.generator, checkpoint, self.seed)

    def advance(self) -> Lap:
        state = self.state
        before = self.session.clock.used
        result = from_first(lambda: self.learner.advance(self.images, state.state, state.generator))
        # Tensors from the first process may be on its device.
        state.state = {name: value.to(self.images.device) for name, value in result.state.items()}
        self.monitors, state.verdict = result.monitors, result.verdict
        state.step += 1
        used = self.session.clock.used
        state.pace = used - before
        record = {"round": state.step, "seconds": used, **result.monitors}
        return Lap(record, self.best(), best=False, keep=state.step % self.every == 0)

    def best(self) -> Progress:
        session = self.session
        machine = self.rule.machine(self.state.state)
        used, rounds = session.clock.used, self.learner.rounds
        return Progress(self.done, rounds, self.progress, used, self.monitors, machine, session.stage)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        return checkpoints.of(self.state, facts)
