"""Progress of long work: a bar on a terminal, plain lines anywhere else; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from restore.console import escaped, say


class Meter(Protocol):
    """Told how far the work has come."""

    def __call__(self, done: int, note: str = "") -> None: ...


def before(meter: Meter, work: str) -> Meter:
    """A meter for work that comes before what `meter` counts, and is told as its note: "WORK 3: loss 0.1"."""
    return lambda done, note="": meter(0, f"{work} {done}: {note}")


@dataclass(frozen=True)
class Passed:
    """What there is to tell after an epoch of training, or a round.

    Attributes:
        done, total: how many are done, and of how many; fewer if training ends by itself.
        seconds: training time so far, of all sittings.
        monitors: the numbers of this epoch, as in the log.
        machine: what training has come to, which goes on changing.
        stage: what of the training this is: "growing", "layer 2", or "" for that of the whole prior.
    """

    done: int
    total: int
    seconds: float
    monitors: Mapping[str, float]
    machine: Any
    stage: str = ""

    @property
    def score(self) -> float | None:
        """Share of wrong pixels of images held out, of grey ones the mean squared error; None if nothing was judged."""
        return self.monitors.get("validation_error")

    @property
    def converged(self) -> float | None:
        """Share of images for which the solver converged, held-out ones if there are any; None if nobody knows."""
        return self.monitors.get("validation_converged", self.monitors.get("converged"))

    @property
    def left(self) -> float:
        """Seconds until all are done, if they go on as they went."""
        return self.seconds / self.done * (self.total - self.done) if self.done else 0.0


# Plain lines are for log files: at most one in this many seconds, and the last one always.
PLAIN_SECONDS = 5.0


@contextmanager
def progress(description: str, total: int | None, *, quiet: bool = False) -> Iterator[Meter]:
    """A meter for `total` pieces of work, None where nobody knows yet; `note` is shown behind the count."""
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
    # Work may end before its total, or have had none.
    if kept_back:
        say(kept_back)
