"""Work on many items in threads, in order, with a bounded number of them under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

THREADS = 8

Item = TypeVar("Item")
Made = TypeVar("Made")


def threads(stack: ExitStack) -> ThreadPoolExecutor:
    """Threads that end with a context; what they have not begun by then is dropped."""
    from concurrent.futures import ThreadPoolExecutor  # a single picture needs none

    pool = ThreadPoolExecutor(THREADS)
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool


def ahead(pool: ThreadPoolExecutor, work: Callable[[Item], Made], items: Iterable[Item], most: int) -> Iterator[Made]:
    """Like `map`, in threads; `most` items are worked on before their results are asked for."""
    under_way: deque[Future[Made]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        while under_way and (len(under_way) > most or under_way[0].done()):
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
