"""Share work that is not Python's among threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def count(otherwise: int = os.cpu_count() or 1) -> int:
    """The number of threads: OMP_NUM_THREADS, as in torch; else one on each processor."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(asked) if asked.isdecimal() else 0) or otherwise


def each(do: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """The results of a function for each item, in order; raises the first exception in this order.

    >>> each(abs, [3, -4])
    [3, 4]
    """
    workers = min(count(), len(items))
    if workers < 2:
        return [do(item) for item in items]
    # Most commands restore what is one item.
    from concurrent.futures import ThreadPoolExecutor

    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda context, item: context.run(do, item), contexts, items))
