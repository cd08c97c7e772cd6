"""The loop of all training: by gradient steps, many to an epoch, or in rounds over all images.

Without a time limit, training is a function of the recipe, the data and the numbers of threads and processes: a run
that was stopped at any moment and resumed from its checkpoint ends with the same bits as one that was left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from restore.errors import RestoreWarning, shown
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import Stopped, circumstances, cut_log, lease, log
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Progress, Session

if TYPE_CHECKING:
    pass


class Lap(NamedTuple):
    """A finished epoch or round: its line of the log, what to report, if it is the best so far, or to be kept."""

    record: dict[str, Any]
    progress: Progress
    best: bool
    keep: bool


class Trainer(Protocol):
    """Training that `drive` advances. Everything that decides the next step is in its state."""

    session: Session

    @property
    def done(self) -> int:
        """The number of finished epochs or rounds."""

    @property
    def finished(self) -> bool: ...

    @property
    def judged(self) -> bool:
        """True if held-out images have judged some prior so far."""

    @property
    def ended(self) -> str:
        """Why training ended before its last epoch or round, in words; empty if it did not."""

    def begin(self) -> None:
        """Make the state before the first step."""

    def restore(self, checkpoint: Checkpoint) -> str:
        """Take the state from a checkpoint, and say in words what differs from then."""

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint: ...

    def advance(self) -> Lap | None:
        """Take a step, or a round; returns the epoch or round that it finished, if any."""

    def best(self) -> Progress:
        """The prior to restore with: the best if some were judged, or the last."""


def drive(work: Trainer, facts: Mapping[str, Any]) -> Progress:
    """Advance work until it is finished; returns the prior to restore with.

    A run cannot be resumed under other facts, the parts of the recipe that decide the outcome. After SIGINT or SIGTERM
    a checkpoint is written, and Stopped raised; what else fails is a TrainingError.
    """
    session = work.session
    folder = work.session.folder
    identity = {"recipe": facts, "data": session.data, **circumstances()}

    def use() -> None:
        best = work.best()
        from_first(lambda: session.usable(best))

    def keep() -> None:
        made = work.snapshot({"identity": identity, "used": session.clock.used})
        from_first(lambda: checkpoints.save(folder, made))
        if not work.judged:
            use()

    with lease(folder, identity, session.resume) as held, torch.inference_mode():
        if held.checkpoint is None:
            work.begin()
        else:
            session.clock.spent = max(session.clock.spent, held.checkpoint.facts["used"])
            changed = work.restore(held.checkpoint)
            if not work.finished:
                for change in filter(None, (changed, held.threads)):
                    differs = f"{shown(folder)}: {change}; the bits of what follows differ"
                    warnings.warn(differs, RestoreWarning, stacklevel=3)
                use()
        if not work.finished:
            from_first(lambda: cut_log(folder, work.done))
        while not work.finished:
            kept = False
            lap = work.advance()
            if lap is not None:
                from_first(partial(log, folder, lap.record))
                session.watch(lap.progress)
                if lap.best:
                    use()
                kept = lap.keep or work.finished
                if kept:
                    keep()
            if stop := held.stop():
                if not kept:
                    keep()
                raise Stopped(stop)
        return replace(work.best(), ended=work.ended)
