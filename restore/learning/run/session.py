"""A session of training: where it works, who hears of it, and how long it may take."""

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
    """A meter that shows nothing."""


def _deaf(passed: Passed) -> None:
    """Takes no notice of what has passed."""


@dataclass(frozen=True)
class Session:
    """Everything around a training run that does not decide what it learns; passed whole from the caller to the loop.

    Attributes:
        folder: run folder for checkpoints and `log.jsonl`; made if it is missing.
        data: names the images, so that a run is not resumed on others.
        resume: go on from the newest checkpoint in the folder, if there is one.
        meter: called by every process with the number of epochs or rounds done.
        watch: called after each epoch or round; perhaps twice, with the same, for the one from which a stopped run
            goes on.
        usable: called with a prior that can restore, as soon as there is one and whenever there is a better one: the
            best by images held out, or as long as none was judged, that of the newest checkpoint.
        budget: seconds for all of it, the sittings before this one included.
        clock: seconds since whenever.
    """

    folder: Path
    data: str = ""
    resume: bool = False
    meter: Meter = _silent
    watch: Callable[[Passed], None] = _deaf
    usable: Callable[[Passed], None] = _deaf
    budget: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def stage(self, name: str, folder: Path, budget: float, *, piece: str = "epoch", of_use: bool = True) -> Session:
        """The session of what goes before the training of the whole prior.

        Args:
            name: what the stage is called in messages.
            folder: its own, inside that of the run.
            budget: seconds for it.
            piece: what its meter counts.
            of_use: whether one can restore with what it comes to.
        """

        def named(hears: Callable[[Passed], None]) -> Callable[[Passed], None]:
            return lambda passed: hears(replace(passed, stage=name))

        return replace(
            self,
            folder=folder,
            meter=before(self.meter, f"{name}, {piece}"),
            watch=named(self.watch),
            usable=named(self.usable) if of_use else _deaf,
            budget=budget,
        )

    def seeing(self, machine_of: Callable[[Any], Any]) -> Session:
        """The same for a learner whose state it takes more to make a machine of."""

        def made(hears: Callable[[Passed], None]) -> Callable[[Passed], None]:
            return lambda passed: hears(replace(passed, machine=machine_of(passed.machine)))

        return replace(self, watch=made(self.watch), usable=made(self.usable))

    def tell(self, passed: Passed) -> None:
        """Tell `watch`, from the first process alone."""
        from_first(partial(self.watch, passed))

    def offer(self, passed: Passed) -> None:
        """Tell `usable`, from the first process alone."""
        from_first(partial(self.usable, passed))

    def timer(self, spent: float = 0.0) -> Callable[[], float]:
        """Begins to count; what is returned tells the seconds so far, with those that were spent before."""
        started = self.clock() - spent
        return lambda: self.clock() - started

    def exceeded(self, seconds: float) -> bool:
        """Whether so many seconds are more than there are, for one process or another: clocks differ."""
        return bool(highest(seconds > self.budget))
