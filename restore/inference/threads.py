"""Divide work: what is not Python's among threads, and pictures into portions that fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from restore import signals

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


# Where Linux says which control group a process belongs to, and lists these.
OWN_GROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def count() -> int:
    """The number of threads: OMP_NUM_THREADS, as in torch; else one on each processor."""
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(setting) if setting.isdecimal() else 0) or processors()


def processors(own_group: Path = OWN_GROUP, groups: Path = GROUPS) -> int:
    """The number of processors that this process may use, by its affinity and the quota of its control groups."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError):
        folder = groups / own_group.read_text("utf-8").rpartition("::")[2].strip().strip("/")
        for group in (folder, *folder.parents):
            with suppress(OSError, ValueError):  # no such group, or "max"
                quota, period = map(int, (group / "cpu.max").read_text("utf-8").split())
                most = min(most, max(1, quota // period))
    return most


def settle() -> None:
    """Set the number of threads of libraries that are not loaded yet, and keep them from waiting in a loop.

    In such loops torch's threads spend as much time as they work on a busy machine.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ["OMP_NUM_THREADS"] = str(processors())


def run_all(do: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of a function for each item, in order; raises the first exception in this order.

    >>> run_all(abs, [3, -4])
    [3, 4]
    """
    workers = min(count(), len(items))
    if workers < 2:
        return [do(item) for item in items]
    # Most commands restore what is one item.
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(workers)
    try:
        with signals.Held():
            futures = [pool.submit(copy_context().run, do, item) for item in items]
        return [_result(future) for future in futures]
    finally:
        with signals.Held():
            pool.shutdown(cancel_futures=True)


def _result(future: Future[Result]) -> Result:
    with signals.Held():
        return future.result()


def portions(items: Iterable[Item], pixels_of: Callable[[Item], int], count: int, pixels: int) -> Iterator[list[Item]]:
    """Split pictures into lists of at most `count`, each of which ends once it has so many pixels.

    Then only the posteriors of a few are in memory at a time.

    >>> list(portions([5, 5, 20, 1], lambda length: length, 3, 10))
    [[5, 5], [20], [1]]
    """
    portion: list[Item] = []
    held = 0
    for item in items:
        portion.append(item)
        held += pixels_of(item)
        if len(portion) == count or held >= pixels:
            yield portion
            portion = []
            held = 0
    if portion:
        yield portion
