"""Text for people, and progress: it cannot control a terminal, and failing to print on stderr never stops the work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TextIO, TypeAlias

from restore.errors import shown

# Plain lines are for log files: at most one in this many seconds, and always the last one.
PLAIN_SECONDS = 5.0


def settle() -> None:
    """Open every standard stream that the caller closed, and let stdout write any text.

    A closed stream is replaced by a file opened the wrong way: no file opened later can take its number.
    """
    for name, mode, wrong in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, wrong)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


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


# Whether progress is shown, or what receives it instead: the work done, its total, and a note.
Display: TypeAlias = bool | Callable[[float, float | None, str], object]


@contextmanager
def progress(description: str, total: float | None, display: Display = True) -> Iterator[Meter]:
    """Make a meter for `total` pieces of work (None if unknown, 1.0 to count in per cent); a note stands behind.

    It appears at its first call, on stderr: a bar on a terminal or in a notebook, plain lines elsewhere; work that is
    done by then, without a note, is not worth one. An error that a callable raises ends the work.

    >>> with progress("restored", 2, lambda done, total, note: print(f"{done} of {total} {note}")) as meter:
    ...     meter(1, "digit.png")
    1 of 2 digit.png
    """
    if not display:
        yield lambda done, note="": None
        return
    if callable(display):

        def pass_on(done: float, note: str = "") -> None:
            display(done, total, note)

        yield pass_on
        return
    if sys.stderr.isatty() or _in_notebook():
        yield from _bar(description, total)
        return
    last = time.monotonic()
    kept_back = ""
    last_line = ""
    begun = False

    def show(done: float, note: str = "") -> None:
        nonlocal last, last_line, kept_back, begun
        begun = begun or bool(note) or done != total
        if not begun:
            return
        count = f"{done:.0%}" if isinstance(total, float) else str(done) if total is None else f"{int(done)}/{total}"
        line = f"{description} {count} {note}".rstrip()
        kept_back = "" if line == last_line else line
        if kept_back and (done == total or time.monotonic() - last >= PLAIN_SECONDS):
            last = time.monotonic()
            last_line = line
            say(line)
            kept_back = ""

    yield show
    # Work may end before its total, or have none.
    if kept_back:
        say(kept_back)


def _in_notebook() -> bool:
    """True where rich can draw a bar between the cells of a notebook, which takes ipywidgets."""
    if "IPython" not in sys.modules:
        return False
    from importlib.util import find_spec

    from rich.console import Console

    return Console().is_jupyter and find_spec("ipywidgets") is not None


def _bar(description: str, total: float | None) -> Iterator[Meter]:
    with ExitStack() as stack:
        bar: Any = None

        def show(done: float, note: str = "") -> None:
            nonlocal bar
            if bar is None and done == total and not note:
                return
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
