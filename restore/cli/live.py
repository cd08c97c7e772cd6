"""What `restore train` shows while it works: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restore.learning.run.session import Passed
    from restore.progress import Meter


def watcher(meter: Meter, judged: str) -> Callable[[Passed], None]:
    """Tell a meter with a total of 1 about training: epoch, the newest score and the best one.

    Args:
        meter: shows the share of training that is done.
        judged: what a score is.
    """
    newest, best = "", float("inf")

    def watch(passed: Passed) -> None:
        nonlocal newest, best
        if passed.score is not None:
            best = min(best, passed.score)
            newest = f", {judged} {passed.score:.5f}, best so far {best:.5f}"
        total = f" of at most {passed.total}" if passed.total else ""
        stage = f"{passed.stage}, " if passed.stage else ""
        meter(0.0 if passed.stage else passed.progress, f"{stage}{passed.done}{total}{newest}")

    return watch
