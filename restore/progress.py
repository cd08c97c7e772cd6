"""Show the progress of long work: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from restore.console import escaped, say


class Meter(Protocol):
    """Receives how far the work has come."""

    def __call__(self, done: int, note: str = "") -> None: ...


def before(meter: Meter, work: str) -> Meter:
    """A meter for work that precedes what `meter` counts; it is shown as a note: "WORK 3: loss 0.1"."""
    return lambda done, note="": meter(0, f"{work} {done}: {note}")


@dataclass(frozen=True)
class Passed:
    """The state of training after an epoch or a round.

    Attributes:
        done, total: how many are done, and of how many; training may end sooner by itself.
        seconds: training time so far, including that before a resume.
        monitors: the numbers of this epoch, as in the log.
        machine: the machine in training; it goes on changing.
        stage: the stage of training: "growing", "layer 2", or "" for the whole prior.
    """

    done: int
    total: int
    seconds: float
    monitors: Mapping[str, float]
    machine: Any
    stage: str = ""

    @property
    def score(self) -> float | None:
        """Share of wrong pixels of held-out images; for grey ones the mean squared error. None if not measured."""
        return self.monitors.get("validation_error")

    @property
    def converged(self) -> float | None:
        """Share of images for which the solver converged, preferably held-out ones; None if not measured."""
        return self.monitors.get("validation_converged", self.monitors.get("converged"))

    @property
    def left(self) -> float:
        """Seconds left if the rest takes as long per epoch."""
        return self.seconds / self.done * (self.total - self.done) if self.done else 0.0


def clock(seconds: float) -> str:
    """A duration as people write it: 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# Plain lines are for log files: at most one in this many seconds, and always the last one.
PLAIN_SECONDS = 5.0


@contextmanager
def progress(description: str, total: int | None, *, quiet: bool = False) -> Iterator[Meter]:
    """Make a meter for `total` pieces of work (None if unknown); a note is shown behind the count."""
    if quiet:
        yield lambda done, note="": None
    elif sys.stderr.isatty():
        yield from _bar(description, total)
    else:
        yield from _lines(description, total)


def _bar(description: str, total: int | None) -> Iterator[Meter]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(escaped(description)), total=total, note="")
        yield lambda done, note="": bar.update(task, completed=done, note=escape(escaped(note)))


def _lines(description: str, total: int | None) -> Iterator[Meter]:
    last, kept_back = time.monotonic(), ""

    def show(done: int, note: str = "") -> None:
        nonlocal last, kept_back
        count = done if total is None else f"{done}/{total}"
        kept_back = f"{description} {count} {note}".rstrip()
        if done == total or time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            say(kept_back)
            kept_back = ""

    yield show
    # Work may end before its total, or have none.
    if kept_back:
        say(kept_back)
