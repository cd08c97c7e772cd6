"""Pictures in portions, so that only the posteriors of a few are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def portions(items: Iterable[Item], pixels_of: Callable[[Item], int], count: int, pixels: int) -> Iterator[list[Item]]:
    """Split pictures into lists of at most `count`, each of which ends once it has so many pixels.

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
