"""A training session: where it works, who hears of it, and how long it may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from restore.learning.run.parallel import highest
from restore.priors import ConditionalRBM, FullyVisible, GaussianMixture, LayeredPrior

# The kinds of machine that recipes train.
Machine = LayeredPrior | ConditionalRBM | FullyVisible | GaussianMixture

# The share of a time limit that is left for modes, scores, graph and report.
CLOSING = 0.25
# The most of it, in seconds.
MOST_CLOSING = 60.0
# The shares of that time after which no prior is judged any more, sweeps for modes end, and nothing else is chosen,
# scored or drawn: making the graph takes the rest.
LATE = 0.1
SWEEPING = 0.3
SCORING = 0.4


@dataclass(frozen=True)
class Progress:
    """The state of training after an epoch or a round.

    Attributes:
        done, total: epochs or rounds done, and the most there may be; 0 if only time ends training.
        progress: the share of this stage that is done, in [0, 1].
        seconds: time used so far, earlier leases included.
        monitors: the numbers of this epoch, as in the log.
        machine: the machine in training; it goes on changing.
        stage: "growing", "layer 2", or "" for the whole prior.
        ended: why training ended before its last epoch or round, in words.
    """

    done: int
    total: int
    progress: float
    seconds: float
    monitors: Mapping[str, float]
    machine: Machine
    stage: str = ""
    ended: str = ""

    @property
    def score(self) -> float | None:
        """Share of wrong pixels of held-out images; for grey ones the mean squared error. None if not measured."""
        return self.monitors.get("validation_error")


@dataclass
class Clock:
    """The time of a run in seconds: its limit, what earlier leases spent, and when this one began, by `now`."""

    limit: float = math.inf
    spent: float = 0.0
    now: Callable[[], float] = time.monotonic
    began: float = math.nan

    def __post_init__(self) -> None:
        self.began = self.now() if math.isnan(self.began) else self.began

    @property
    def used(self) -> float:
        return self.spent + self.now() - self.began

    @property
    def limited(self) -> bool:
        return self.limit < math.inf

    def end(self, share: float) -> float:
        """The seconds used when a share of the time after learning is used, too; with 0, when learning must end."""
        return self.limit - (1 - share) * min(MOST_CLOSING, CLOSING * self.limit) if self.limited else math.inf

    def later_than(self, share: float) -> bool:
        """True if more than a share of the time that is left after learning is used."""
        return self.used > self.end(share)


def _ignore(news: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Session:
    """Everything around a training run that does not decide what it learns.

    Attributes:
        folder: the run's folder, for checkpoints and `log.jsonl`; made if it is missing.
        lasting: whether the best prior so far is kept there as well, with the report.
        target: the folder for the prior of the end, if any.
        data: identifies the images, so that a run is not resumed on others.
        resume: whether to continue from the checkpoint in the folder, if there is one.
        overwrite: whether to begin anew where there is one, and to replace a prior in the target.
        command, again: what was typed, for the card, and what goes on with the run after a stop, in words.
        watch: called by every process after each epoch or round.
        usable: called with every better machine that can restore, or that of the checkpoint as long as none was
            judged.
        note: called with what is being done after training, in words.
        stage, share, over: of a stage before the training of the whole prior, its name, its share of the time left, and
            True if it has ended in an earlier lease.
    """

    folder: Path
    data: str = ""
    resume: bool = False
    overwrite: bool = False
    target: Path | None = None
    lasting: bool = False
    command: str = ""
    again: str = ""
    watch: Callable[[Progress], None] = _ignore
    usable: Callable[[Progress], None] = _ignore
    note: Callable[[str], None] = _ignore
    clock: Clock = field(default_factory=Clock)
    stage: str = ""
    share: float = 1.0
    over: bool = False

    @property
    def kept_in(self) -> Path | None:
        """The folder for the best prior so far, if any."""
        return self.folder if self.lasting else None

    def progress(self, done: float, began: float, soon: float = 0.0) -> float:
        """The share of a stage that is done, in [0, 1], the same in all processes; drives rate and end.

        The stage has done a share of its epochs or rounds, and began when `began` seconds were used; the next piece of
        work will take some `soon`.
        """
        if self.over:
            return 1.0
        if self.clock.limited:
            length = self.share * (self.clock.end(0.0) - began)
            elapsed = highest(self.clock.used + soon - began)
            done = max(done, elapsed / length if length > 0 else 1.0)
        return min(1.0, done)
