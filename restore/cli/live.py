"""The table that `restore train` shows on a terminal, or plain lines elsewhere. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from restore.console import escaped
from restore.progress import Meter, Passed, clock, progress

if TYPE_CHECKING:
    from rich.table import Table

Watcher: TypeAlias = Callable[[Passed], None]

# How many of the newest epochs are shown.
SHOWN = 8


@contextmanager
def training_shown(
    name: str, total: int | None, judged: str, *, quiet: bool = False
) -> Iterator[tuple[Meter, Watcher]]:
    """Show training while it goes on; yields what training reports to.

    Args:
        name: name of the prior.
        total: number of epochs or rounds; None if not known yet.
        judged: what the score is.
        quiet: show nothing.
    """
    if quiet or not sys.stderr.isatty():
        with progress(name, total, quiet=quiet) as meter:
            yield lambda done, note="": None, in_lines(meter, judged)
        return
    from rich.console import Console
    from rich.live import Live

    history: list[Passed] = []
    told, arrived = "starting", time.monotonic()

    def tell(done: int, note: str = "") -> None:
        nonlocal told
        told = note

    def watch(passed: Passed) -> None:
        nonlocal arrived
        history.append(passed)
        arrived = time.monotonic()

    def drawn() -> Table:
        # Numbers in the table are not repeated below it.
        below = "" if history and history[-1].stage == "" else told
        return table_of(name, judged, history, time.monotonic() - arrived, below)

    with Live(get_renderable=drawn, console=Console(stderr=True), refresh_per_second=4):
        yield tell, watch


def in_lines(meter: Meter, judged: str) -> Watcher:
    """Pass the time and the newest score, which not every epoch has, on to a meter after each epoch.

    Args:
        meter: counts the epochs of the whole prior; what comes before them counts as 0.
        judged: what the score is.
    """
    verdict = ""

    def watch(passed: Passed) -> None:
        nonlocal verdict
        if passed.score is not None:
            verdict = f"; {judged} {_score(passed.score)}"
            verdict += "" if passed.converged is None else f", converged {passed.converged:.0%}"
        times = f"{clock(passed.seconds)} so far, {clock(passed.left)} left{verdict}"
        if passed.stage:
            meter(0, f"{passed.stage} {passed.done}: {times}")
        else:
            meter(passed.done, times)

    return watch


def table_of(name: str, judged: str, history: Sequence[Passed], since: float, below: str = "") -> Table:
    """The newest epochs of a stage of training as a table.

    Args:
        name: name of the prior.
        judged: what the score is.
        history: everything reported so far, in order.
        since: seconds since the last report.
        below: a line below the table.
    """
    from rich.markup import escape
    from rich.table import Table

    stage = history[-1].stage if history else ""
    those = [passed for passed in history if passed.stage == stage]
    title = f"{name}: {stage}" if stage else name
    if those:
        now = those[-1]
        title += f", {now.done} of at most {now.total}, {clock(now.seconds + since)} so far, "
        title += f"{clock(max(0.0, now.left - since))} left"
    title, below = escape(escaped(title)), escape(escaped(below))
    table = Table(title=title, title_justify="left", caption=below or None, caption_justify="left")
    for column in ("epoch", "time", judged, "best so far", "converged"):
        table.add_column(escape(escaped(column)), justify="right")
    for number, passed in enumerate(those[-SHOWN:], max(0, len(those) - SHOWN)):
        scores = [earlier.score for earlier in those[: number + 1] if earlier.score is not None]
        best = min(scores, default=None)
        table.add_row(
            str(passed.done),
            clock(passed.seconds),
            _score(passed.score),
            _score(best),
            "" if passed.converged is None else f"{passed.converged:.0%}",
            style="bold" if passed.score is not None and passed.score == best else None,
        )
    return table


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.5f}"
