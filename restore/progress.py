"""Show the progress of long work: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from restore.console import escaped, say

# Plain lines are for log files: at most one in this many seconds, and always the last one.
PLAIN_SECONDS = 5.0


class Meter(Protocol):
    """Receives the amount of work done."""

    def __call__(self, done: float, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: float | None, *, quiet: bool = False) -> Iterator[Meter]:
    """Make a meter for `total` pieces of work (None if unknown, 1.0 to count in per cent); a note stands behind.

    It appears at its first call.
    """
    if quiet:
        yield lambda done, note="": None
        return
    if sys.stderr.isatty():
        yield from _bar(description, total)
        return
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


def _bar(description: str, total: float | None) -> Iterator[Meter]:
    with ExitStack() as stack:
        bar: Any = None

        def show(done: float, note: str = "") -> None:
            nonlocal bar
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            if bar is None:
                number = TextColumn("{task.percentage:>3.0f}%") if isinstance(total, float) else MofNCompleteColumn()
                text, behind = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
                columns = (text, BarColumn(), number, TimeRemainingColumn(), behind)
                bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
                bar.add_task(escape(escaped(description)), total=total, note="")
            bar.update(bar.task_ids[0], completed=done, note=escape(escaped(note)))

        yield show
