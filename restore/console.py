"""Text for people, and progress: it cannot control a terminal, and failing to print on stderr never stops the work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TextIO

from restore.errors import shown

# Plain lines are for log files: at most one in this many seconds, and always the last one.
PLAIN_SECONDS = 5.0


def escaped(text: str) -> str:
    r"""Write out invisible characters, such as the escapes of a terminal, as `\x1b`; line breaks stay."""
    return "".join(c if c in "\n\t" else shown(c) for c in text)


def say(text: str) -> None:
    """Print on stderr; if that is closed or full, the text is lost."""
    try:
        print(escaped(text), file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def tell(text: str, *, flush: bool = False) -> None:
    """Print on stdout; raises OSError if that fails."""
    print(escaped(text), flush=flush)


def drop(stream: TextIO) -> None:
    """Discard what is buffered and all that follows, so that flushing at exit does not fail."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), stream.fileno())


class Meter(Protocol):
    """Receives the amount of work done."""

    def __call__(self, done: float, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: float | None, *, quiet: bool = False) -> Iterator[Meter]:
    """Make a meter for `total` pieces of work (None if unknown, 1.0 to count in per cent); a note stands behind.

    It appears at its first call, on stderr: a bar on a terminal, plain lines elsewhere.
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
