"""The training loop: work of any kind advances until it has finished, with checkpoints, a log and an ear for signals.

Training is a function of the recipe, the data and the numbers of threads and processes. Everything that decides about
what comes next is in a checkpoint, so a run that is stopped at any moment and resumed ends with the same bits as one
that was left alone.
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
    """An epoch or a round that is done: its line of the log, and what there is to tell."""

    record: dict[str, Any]
    passed: Passed


class Work(Protocol):
    """What can be trained: by gradient steps, many of which make an epoch, or in rounds."""

    @property
    def done(self) -> int:
        """Epochs or rounds so far."""

    @property
    def place(self) -> str:
        """How far it has come, in words: "step 12"."""

    @property
    def seconds(self) -> float:
        """Training time so far, of all sittings."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""

    @property
    def judged(self) -> bool:
        """Whether the best so far is known by images held out."""

    def begin(self) -> None:
        """Come to where the first step or round begins."""

    def restore(self, found: Checkpoint) -> str:
        """Come to where a checkpoint was made; what cannot be as it was then is returned in words."""

    def relimited(self) -> str:
        """Take notice that the limit of time is another than in the sitting before; returns what that changes."""

    def changed(self, changes: Sequence[str]) -> None:
        """Remember what keeps a recipe from repeating this run to the bit."""

    def plan(self) -> None:
        """Find out how much there is to do, where nobody has said; the time it takes counts."""

    def advance(self, elapsed: Callable[[], float]) -> Lap | None:
        """One step or round, by a timer; None in the middle of an epoch."""

    def best(self) -> Passed:
        """What there is to restore with: the best by images held out, or as long as none was judged, the newest."""

    def snapshot(self, identity: Mapping[str, Any]) -> Checkpoint:
        """Everything that it needs to go on, as the run of an identity."""


def drive(work: Work, session: Session, facts: Mapping[str, Any], checkpoint_every: int) -> int:
    """Let work advance until it has finished.

    Args:
        work: what is trained.
        session: where, and who hears of it.
        facts: what of the recipe decides the outcome; a run is not resumed under others.
        checkpoint_every: epochs or rounds between two checkpoints.

    Returns:
        The signal that arrived as the work came to its end, which stops nothing here any more; 0 for none.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written; or training failed.
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
    """Take up work at a checkpoint, and say which limits changed since the sitting before."""
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
