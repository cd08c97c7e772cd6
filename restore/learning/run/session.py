"""A training session: where it works, who is told, and how long it may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from restore.learning.run.parallel import from_first, highest
from restore.progress import Meter, Passed, before


def _silent(done: int, note: str = "") -> None:
    """Show nothing."""


def _deaf(passed: Passed) -> None:
    """Ignore what has passed."""


def _unheard(said: str) -> None:
    """Ignore what is announced."""


@dataclass(frozen=True)
class Session:
    """Everything around a training run that does not decide what it learns; passed whole from the caller to the loop.

    Attributes:
        folder: run folder for checkpoints and `log.jsonl`; made if it is missing.
        data: identifies the images, so that a run is not resumed on others.
        resume: whether to continue from the newest checkpoint in the folder, if there is one.
        meter: called by every process with the number of epochs or rounds done.
        watch: called after each epoch or round; the one from which a stopped run continues may be reported twice.
        usable: called with every better prior that can restore: the best by held-out images, or that of the newest
            checkpoint as long as none was judged.
        announce: called with the number of epochs for which there is time, and how long they should take, in words.
        any_threads: whether, under a time limit, torch may use fewer threads if that is faster.
        budget: seconds for all of it, including the sittings before this one.
        clock: seconds since any moment.
    """

    folder: Path
    data: str = ""
    resume: bool = False
    meter: Meter = _silent
    watch: Callable[[Passed], None] = _deaf
    usable: Callable[[Passed], None] = _deaf
    announce: Callable[[str], None] = _unheard
    any_threads: bool = False
    budget: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def stage(self, name: str, folder: Path, budget: float, *, piece: str = "epoch", of_use: bool = True) -> Session:
        """The session of a stage before the training of the whole prior.

        Args:
            name: the stage's name in messages.
            folder: its own folder, inside the run's.
            budget: seconds for it.
            piece: what its meter counts.
            of_use: whether its result can restore images.
        """

        def named(hears: Callable[[Passed], None]) -> Callable[[Passed], None]:
            return lambda passed: hears(replace(passed, stage=name))

        return replace(
            self,
            folder=folder,
            meter=before(self.meter, f"{name}, {piece}"),
            watch=named(self.watch),
            usable=named(self.usable) if of_use else _deaf,
            announce=lambda said: self.announce(f"{name}: {said}"),
            budget=budget,
        )

    def seeing(self, machine_of: Callable[[Any], Any]) -> Session:
        """The same session, for a learner whose state must first be turned into a machine."""

        def made(hears: Callable[[Passed], None]) -> Callable[[Passed], None]:
            return lambda passed: hears(replace(passed, machine=machine_of(passed.machine)))

        return replace(self, watch=made(self.watch), usable=made(self.usable))

    def tell(self, passed: Passed) -> None:
        """Call `watch`, in the first process only."""
        from_first(partial(self.watch, passed))

    def offer(self, passed: Passed) -> None:
        """Call `usable`, in the first process only."""
        from_first(partial(self.usable, passed))

    def timer(self, spent: float = 0.0) -> Callable[[], float]:
        """Start counting; the result returns the seconds so far, including those spent before."""
        started = self.clock() - spent
        return lambda: self.clock() - started

    def exceeded(self, seconds: float) -> bool:
        """Whether so many seconds exceed the budget in any process: clocks differ."""
        return bool(highest(seconds > self.budget))
