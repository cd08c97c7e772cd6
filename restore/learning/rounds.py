"""The loop of learners that change a prior themselves, a round over all images at a time.

Frank-Wolfe adds a unit per round, block ascent sweeps over all couplings: neither leaves a gradient for an optimizer,
so they do not go through `restore.learning.fit`. Everything that decides about the next round is in a checkpoint here
too. Of several processes the first alone works, and tells the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from restore.learning import checkpoint as checkpoints
from restore.learning.checkpoint import Checkpoint
from restore.learning.contract import LearnerState
from restore.learning.parallel import from_first
from restore.learning.run_folder import (
    THREADS,
    Stopped,
    circumstances,
    cut_log,
    log,
    set_generator,
    sitting,
    tell_changes,
)
from restore.learning.session import Session
from restore.progress import Passed


@dataclass(frozen=True)
class Round:
    """What one round gave.

    Attributes:
        state: after the round; tensors only, so that a checkpoint can hold it. Their shapes may change.
        monitors: numbers worth logging.
        verdict: why this round was the last, as a sentence for users; empty as long as it was not.
    """

    state: LearnerState
    monitors: Mapping[str, float]
    verdict: str = ""


class RoundLearner(Protocol):
    """A learner that changes the parameters itself; frozen settings."""

    @property
    def rounds(self) -> int:
        """No more rounds than this."""

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The state before the first round, given all training images (N, D)."""

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """One round."""


@dataclass(frozen=True)
class Outcome:
    """Where the rounds ended.

    Attributes:
        state: after them.
        rounds: how many there were.
        verdict: why no more followed; empty where that was their highest number.
        complete: whether the learner said so.
        changes: what was changed between two sittings, so that no recipe repeats the rounds to the bit, in words.
    """

    state: LearnerState
    rounds: int
    verdict: str
    complete: bool
    changes: tuple[str, ...] = ()


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
    """Let a learner work until it says that it is done, or its last round.

    Args:
        learner: what to run.
        images: training images (N, D), on the device to train on.
        session: where, and who hears of it: the machine is the state that the learner has come to. No round begins that
            would not end in time, if it is like the one before.
        seed: of everything random.
        facts: what of the recipe decides the outcome; a run is not resumed under others.
        checkpoint_every: rounds between two checkpoints.
        needed: rounds for which there must be time; where the first two let expect that there is none, no more follow.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written; or what the learner raises.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    folder = session.folder
    known = {"recipe": facts, "data": session.data, **circumstances()}
    generator = torch.Generator(images.device).manual_seed(seed)
    with sitting(folder, known, session.resume) as held, torch.inference_mode():
        done, verdict, complete, spent = 0, "", False, 0.0
        changes: list[str] = []
        if held.found is None:
            state = from_first(lambda: learner.begin(images, generator))
        else:
            was = held.found.facts
            done, verdict, complete, spent = held.found.step, was["verdict"], was["complete"], was["seconds"]
            changes = was.get("changes", [])
            drawn = set_generator(generator, held.found, seed)
            state = {
                name.removeprefix("state."): value.to(images.device)
                for name, value in held.found.tensors.items()
                if name.startswith("state.")
            }
            if not verdict and done < learner.rounds:
                new = [f"{change}, after round {done}" for change in (drawn, held.changed.get(THREADS)) if change]
                from_first(partial(tell_changes, folder, new))
                session.offer(Passed(done, learner.rounds, spent, {}, state))
                changes = [*changes, *new]
        from_first(partial(cut_log, folder, done))
        elapsed, seconds = session.timer(spent), spent
        while not verdict and done < learner.rounds:
            result = from_first(partial(learner.advance, images, state, generator))
            state, verdict, complete, done = result.state, result.verdict, bool(result.verdict), done + 1
            before, seconds = seconds, elapsed()
            if session.exceeded(2 * seconds - before) and done < learner.rounds:
                verdict = verdict or f"the time was over after {done} rounds"
            # The first round takes up to twice as long as the second.
            pace = (seconds - before) / (2 if done == 1 else 1)
            if done <= min(2, needed) and session.exceeded(seconds + (needed - done) * pace):
                verdict = verdict or f"there was no time for {needed} rounds, so round {done} was the last"
            from_first(partial(log, folder, {"round": done, "seconds": seconds, **result.monitors}))
            session.meter(done, " ".join(f"{name} {value:.4g}" for name, value in result.monitors.items()))
            passed = Passed(done, learner.rounds, seconds, result.monitors, state)
            session.tell(passed)
            last = bool(verdict) or done == learner.rounds
            stop = held.stop()
            if last or stop or done % checkpoint_every == 0:
                tensors = {f"state.{name}": value for name, value in state.items()}
                tensors["generator"] = generator.get_state()
                said = {"identity": known, "seconds": seconds, "verdict": verdict, "complete": complete}
                said |= {"changes": changes}
                from_first(partial(checkpoints.save, folder, Checkpoint(done, tensors, said)))
                session.offer(passed)
            # After the last round too: what follows the rounds may take as long as they did.
            if stop:
                raise Stopped(stop)
        state = {name: value.to(images.device) for name, value in state.items()}
        return Outcome(state, done, verdict, complete, tuple(changes))
