"""Do the same to several things on several threads, where what is done is not Python's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def told() -> int:
    """How many threads are to share the work: OMP_NUM_THREADS, as in torch, or 0 if nothing is said."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(asked) if asked.isdecimal() else 0


def count() -> int:
    """How many threads share the work: as many as told, or one on each processor."""
    return told() or os.cpu_count() or 1


def each(do: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """What a function makes of each item, in their order; raises the first exception in this order.

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
