"""Show the progress of long work: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from restore.console import escaped, say

# Plain lines are for log files: at most one in this many seconds, and always the last one.
PLAIN_SECONDS = 5.0


class Meter(Protocol):
    """Receives how far the work has come."""

    def __call__(self, done: float, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: float | None, *, quiet: bool = False) -> Iterator[Meter]:
    """Make a meter for `total` pieces of work (None if unknown, 1.0 to count in per cent); a note stands behind."""
    if quiet:
        yield lambda done, note="": None
    elif sys.stderr.isatty():
        yield from _bar(description, total)
    else:
        yield from _lines(description, total)


def _bar(description: str, total: float | None) -> Iterator[Meter]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    count = TextColumn("{task.percentage:>3.0f}%") if isinstance(total, float) else MofNCompleteColumn()
    note = TextColumn("{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), note)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(escaped(description)), total=total, note="")
        yield lambda done, note="": bar.update(task, completed=done, note=escape(escaped(note)))


def _lines(description: str, total: float | None) -> Iterator[Meter]:
    last, kept_back = time.monotonic(), ""

    def show(done: float, note: str = "") -> None:
        nonlocal last, kept_back
        count = f"{done:.0%}" if isinstance(total, float) else str(done) if total is None else f"{done}/{total}"
        kept_back = f"{description} {count} {note}".rstrip()
        if done == total or time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            say(kept_back)
            kept_back = ""

    yield show
    # Work may end before its total, or have none.
    if kept_back:
        say(kept_back)
