"""The blocks in which a large image is restored: each with as much around it as its answer depends on.

So what restoring takes in memory depends on a block alone, and blocks leave no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from restore.errors import UsageError, option
from restore.inference.tiles.grid import blocks
from restore.zoo.description import Description

# Windows of a block: enough to keep both engines busy, few enough for some hundred megabytes.
WINDOWS = 8192

# Arrays of the size of its windows that a block takes in single precision, and of their hidden units.
ARRAYS, HIDDEN = 14, 4

# For a prior that takes a block as one image: how long its sides may be, and by how much it is wider than its core. A
# pixel that is decided hardly depends on others that far away.
SIDE, MARGIN = 1024, 32

# The same for the parts in which it takes a block: their state fits into the caches of a processor, and its cores share
# them. Further away there is less than what solvers leave undone where they stop.
PART, AROUND = 128, 16

# Rows and columns of an image.
Part: TypeAlias = tuple[slice, slice]


@dataclass(frozen=True)
class Block:
    """A part of an image, its `core`, and what its answer depends on, `around` it."""

    core: Part
    around: Part

    @property
    def inner(self) -> Part:
        """The core within what is around it."""
        rows, columns = (
            slice(core.start - around.start, core.stop - around.start)
            for core, around in zip(self.core, self.around, strict=True)
        )
        return rows, columns


def blocks_of(shape: tuple[int, ...], about: Description, max_memory: int | None) -> Iterator[Block]:
    """The blocks of an image that a prior restores in windows.

    Raises:
        UsageError: if the memory allowed, in bytes, does not hold a window.
    """
    if about.whole:
        side = _side_allowed(about, max_memory)
        yield from _blocks(shape, (side, side), (1, 1), (MARGIN, MARGIN))
        return
    sides, tiling = about.image_shape, about.tiling
    # Blocks and margins are of pairs of windows, of which the first round takes the first.
    pairs = [2 * -(-side // tiling.overlap) for side in sides]
    # Every round, a window hears of what lies within the windows that it overlaps.
    margins = [-(-(tiling.rounds + 1) * (side - 1) // pair) * pair for side, pair in zip(sides, pairs, strict=True)]
    # Where little memory is allowed, it is the margins that take it.
    across = int(_windows_allowed(about, max_memory) ** 0.5)
    longest = [max(pair, across * pair // 2 - 2 * margin) for pair, margin in zip(pairs, margins, strict=True)]
    yield from _blocks(shape, longest, pairs, margins)


def _blocks(
    shape: tuple[int, ...], longest: Sequence[int], strides: Sequence[int], margins: Sequence[int]
) -> Iterator[Block]:
    """Blocks whose cores are at most so long, along either axis, and begin at whole strides."""
    rows, columns = (
        [(slice(*core), slice(max(0, core[0] - margin), min(size, core[1] + margin))) for core in blocks(size, *each)]
        for size, margin, *each in zip(shape, margins, longest, strides, strict=True)
    )
    for (top, above), (left, before) in product(rows, columns):
        yield Block((top, left), (above, before))


def parts_of(shape: tuple[int, int]) -> list[Block]:
    """The parts of an image for a prior that takes each as an image: all of one size, with what is around them."""
    down, across = map(_spans, shape)
    return [Block((top, left), (above, before)) for top, above in down for left, before in across]


def _spans(size: int) -> list[tuple[slice, slice]]:
    """Equally long spans of an axis that overlap by twice `AROUND`: the middle of each, and all of it."""
    count = max(1, -(-(size - 2 * AROUND) // PART))
    length = -(-(size + 2 * AROUND * (count - 1)) // count)
    starts = np.linspace(0, size - length, count).round().astype(int).tolist()
    cuts = [0, *((left + right + length) // 2 for left, right in pairwise(starts)), size]
    return [(slice(*core), slice(start, start + length)) for start, core in zip(starts, pairwise(cuts), strict=True)]


def _windows_allowed(about: Description, max_memory: int | None) -> int:
    if max_memory is None:
        return WINDOWS
    window = 4 * (ARRAYS * about.pixels + HIDDEN * sum(about.sizes[1:]))
    if max_memory < window:
        raise UsageError(f"a window of {about.name} takes {window} bytes; raise {option('max_memory')} to that")
    return min(WINDOWS, max_memory // window)


def _side_allowed(about: Description, max_memory: int | None) -> int:
    """The longest side of a core for a prior that takes a block as one image."""
    if max_memory is None:
        return SIDE
    pixel = 4 * (ARRAYS + HIDDEN * about.hidden)
    side = int((max_memory / pixel) ** 0.5) - 2 * MARGIN
    if side < 1:
        least = pixel * (2 * MARGIN + 1) ** 2
        raise UsageError(f"the least part of an image takes {least} bytes; raise {option('max_memory')} to that")
    return min(SIDE, side)
