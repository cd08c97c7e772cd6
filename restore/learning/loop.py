"""The training loop: it advances any kind of work until that is finished, with checkpoints, a log and signal handling.

Training is a function of the recipe, the data and the numbers of threads and processes. A checkpoint holds all that
decides what comes next. So a run that was stopped at any moment and resumed ends with the same bits as one that was
left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch

from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import THREADS, Sitting, Stopped, circumstances, cut_log, log, sitting, tell_changes
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Session
from restore.progress import Passed


class Lap(NamedTuple):
    """A finished epoch or round: its line of the log, and what to report."""

    record: dict[str, Any]
    passed: Passed


class Work(Protocol):
    """Any kind of training: by gradient steps, many to an epoch, or in rounds."""

    @property
    def done(self) -> int:
        """Epochs or rounds so far."""

    @property
    def place(self) -> str:
        """How far it has come, in words: "step 12"."""

    @property
    def seconds(self) -> float:
        """Training time so far, including that before a resume."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""

    @property
    def judged(self) -> bool:
        """Whether the best prior so far is known from held-out images."""

    def begin(self) -> None:
        """Set up the state before the first step or round."""

    def restore(self, found: Checkpoint) -> str:
        """Set up the state of a checkpoint; returns in words what cannot be as it was."""

    def relimited(self) -> str:
        """React to a time limit that differs from that before a resume; returns in words what changes."""

    def changed(self, changes: Sequence[str]) -> None:
        """Record what keeps a recipe from repeating this run exactly."""

    def plan(self) -> None:
        """Find out how much to do, if that is not given; the time this takes counts."""

    def advance(self, elapsed: Callable[[], float]) -> Lap | None:
        """Do one step or round, timed; returns None within an epoch."""

    def best(self) -> Passed:
        """The prior to restore with: the best by held-out images, or the newest if none was judged."""

    def snapshot(self, identity: Mapping[str, Any]) -> Checkpoint:
        """All that is needed to continue, marked with the identity of the run."""


def drive(work: Work, session: Session, facts: Mapping[str, Any], checkpoint_every: int) -> int:
    """Advance work until it is finished.

    Args:
        work: what is trained.
        session: where, and who is told.
        facts: the parts of the recipe that decide the outcome; a run cannot be resumed under others.
        checkpoint_every: epochs or rounds between two checkpoints.

    Returns:
        The signal that arrived while the last step was done, too late to stop anything here; 0 for none.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or training failed.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    folder, stop = session.folder, 0
    identity = {"recipe": facts, "data": session.data, **circumstances()}

    def keep() -> None:
        from_first(partial(checkpoints.save, folder, work.snapshot(identity)))
        if not work.judged:
            session.offer(work.best())

    with sitting(folder, identity, session.resume) as held, torch.inference_mode():
        if held.found is None:
            work.begin()
        else:
            _go_on(work, held, held.found, session)
        from_first(partial(cut_log, folder, work.done))
        elapsed = session.timer(work.seconds)
        work.plan()
        while not work.finished:
            kept = False
            lap = work.advance(elapsed)
            if lap is not None:
                passed = lap.passed
                from_first(partial(log, folder, lap.record))
                session.meter(passed.done, " ".join(f"{name} {value:.4g}" for name, value in passed.monitors.items()))
                session.tell(passed)
                if work.judged and work.best().done == passed.done:
                    session.offer(work.best())
                kept = passed.done % checkpoint_every == 0 or work.finished
                if kept:
                    keep()
            stop = held.stop()
            if stop and not work.finished:
                if not kept:
                    keep()
                raise Stopped(stop)
    return stop


def _go_on(work: Work, held: Sitting, found: Checkpoint, session: Session) -> None:
    """Continue from a checkpoint, and report which limits have changed."""
    drawn, ended = work.restore(found), work.finished
    limit = work.relimited() if held.limited_otherwise else ""
    if ended:
        return
    different = filter(None, (drawn, held.changed.get(THREADS, ""), limit))
    changes = [f"{change}, after {work.place}" for change in different]
    from_first(partial(tell_changes, session.folder, changes))
    work.changed(changes)
    if not work.finished:
        session.offer(work.best())
