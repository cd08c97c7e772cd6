"""Progress of long work: a bar on a terminal, plain lines anywhere else; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Meter(Protocol):
    """Told how far the work has come."""

    def __call__(self, done: int, note: str = "") -> None: ...


def before(meter: Meter, work: str) -> Meter:
    """A meter for work that comes before what `meter` counts, and is told as its note: "WORK 3: loss 0.1"."""
    return lambda done, note="": meter(0, f"{work} {done}: {note}")


# Plain lines are for log files: at most one in this many seconds, and the last one always.
PLAIN_SECONDS = 5.0


@contextmanager
def progress(description: str, total: int, *, quiet: bool = False) -> Iterator[Meter]:
    """A meter for `total` pieces of work; `note` is shown behind the count."""
    if quiet:
        yield lambda done, note="": None
    elif sys.stderr.isatty():
        yield from _bar(description, total)
    else:
        yield from _lines(description, total)


def _bar(description: str, total: int) -> Iterator[Meter]:
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
        task = bar.add_task(escape(description), total=total, note="")
        yield lambda done, note="": bar.update(task, completed=done, note=escape(note))


def _lines(description: str, total: int) -> Iterator[Meter]:
    last = time.monotonic()

    def show(done: int, note: str = "") -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            print(f"{description} {done}/{total} {note}".rstrip(), file=sys.stderr, flush=True)

    yield show
