"""Work on many items in threads, in order, with a bounded number of them under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapped(Protocol):
    """Like `map`, but up to `ahead` items are taken and worked on before their results are asked for."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]: ...


@contextmanager
def workers(count: int) -> Iterator[Mapped]:
    """Run this many threads inside the context; with one, work is done in the caller's thread.

    When an exception ends the context, items not yet begun are dropped, and the others are finished.
    """
    if count == 1:
        yield lambda function, items, ahead: map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(count)
    try:
        yield lambda function, items, ahead: _in_order(pool, function, items, ahead)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    under_way: deque[Future[Result]] = deque()
    for item in items:
        under_way.append(pool.submit(function, item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
