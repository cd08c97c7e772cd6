"""The training loop: it advances any kind of work until that is finished, with checkpoints, a log and signal handling.

Without a time limit, training is a function of the recipe, the data and the numbers of threads and processes. A
checkpoint holds all that decides what comes next, so a run that was stopped at any moment and resumed ends with the
same bits as one that was left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch

from restore.errors import shown
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import Stopped, circumstances, cut_log, log, sitting
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Passed, Session


class Lap(NamedTuple):
    """A finished epoch or round.

    Attributes:
        record: its line of the log.
        passed: what to report.
        best: whether its prior is the best so far by held-out images.
        keep: whether it is time for a checkpoint.
    """

    record: dict[str, Any]
    passed: Passed
    best: bool
    keep: bool


class Work(Protocol):
    """Any kind of training: by gradient steps, many to an epoch, or in rounds."""

    @property
    def done(self) -> int:
        """Whole epochs or rounds so far."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do, or there is no time for it."""

    @property
    def judged(self) -> bool:
        """Whether the best prior so far is known from held-out images."""

    def begin(self) -> None:
        """Set up the state before the first step or round."""

    def restore(self, found: Checkpoint) -> str:
        """Set up the state of a checkpoint; returns in words what cannot be as it was."""

    def advance(self) -> Lap | None:
        """Do one step or round; returns None within an epoch."""

    def best(self) -> Passed:
        """The prior to restore with: the best by held-out images, or the newest if none was judged."""

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        """All that is needed to continue, and facts about the run."""


def drive(work: Work, session: Session, facts: Mapping[str, Any]) -> None:
    """Advance work until it is finished.

    Args:
        work: what is trained.
        session: where, and who is told.
        facts: the parts of the recipe that decide the outcome; a run cannot be resumed under others.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or training failed.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    folder = session.folder
    identity = {"recipe": facts, "data": session.data, **circumstances()}

    def keep() -> None:
        about = {"identity": identity, "used": session.clock.used}
        from_first(partial(checkpoints.save, folder, work.snapshot(about)))
        if not work.judged:
            from_first(partial(session.usable, work.best()))

    with sitting(folder, identity, session.resume) as held, torch.inference_mode():
        if held.found is None:
            work.begin()
        else:
            session.clock.spent = max(session.clock.spent, held.found.facts["used"])
            changed = work.restore(held.found)
            if not work.finished:
                for change in filter(None, (changed, held.threads)):
                    warnings.warn(f"{shown(folder)}: {change}; the bits of what follows differ", stacklevel=3)
                from_first(partial(session.usable, work.best()))
        if not work.finished:
            from_first(partial(cut_log, folder, work.done))
        while not work.finished:
            kept = False
            lap = work.advance()
            if lap is not None:
                from_first(partial(log, folder, lap.record))
                session.watch(lap.passed)
                if lap.best:
                    from_first(partial(session.usable, work.best()))
                kept = lap.keep or work.finished
                if kept:
                    keep()
            if stop := held.stop():
                if not kept:
                    keep()
                raise Stopped(stop)
