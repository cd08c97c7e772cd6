"""The blocks in which a large image is restored: each with as much around it as its answer depends on.

So what restoring takes in memory depends on a block alone, and blocks leave no trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple, TypeAlias

import numpy as np

from restore.registry import SOLVERS
from restore.zoo.description import Description

# Tiles along a side of a block: enough to keep both engines busy, few enough for some hundred megabytes.
TILES = 90

# For a prior that takes a block as one image: the side of the block's core, and the least margin around it, in pixels.
# A pixel that is decided hardly depends on others that far away.
CORE_SIDE = 1024
CORE_MARGIN = 32

# The same for the parts in which it takes a block, which the cores of a processor share, in places of the finest layer:
# larger ones take more memory (`benchmarks/choices/sizes.py`), and not less time.
PART_SIDE = 256
PART_MARGIN = 16

# A margin is at least so many steps of the coarsest layer, about as far as one sweep up and down carries. The views of
# a grey page measure paper and ink over some hundred pixels, yet of two old pages .004 and .017 % of the pixels differ
# from those without parts with 64 pixels around each, .015 and .026 % with 32 (by hand).
MARGIN_STEPS = 4

# So many rows and columns are mirrored at the borders of a page, where else up to seven times as much grain becomes ink
# as inside (`benchmarks/choices/page_edges.py`).
PAGE_BEYOND = 8

# On a GPU parts lose less to what is around them, and a small GPU still holds one.
PART_SIDE_ON_GPU = 512

# Rows and columns of an image; and a span of one of them, with what is around it.
Part: TypeAlias = tuple[slice, slice]
Span: TypeAlias = tuple[slice, slice]


class Cutting(NamedTuple):
    """How an axis is cut into spans: the length of cores, the least margin, and a divisor of starts and lengths."""

    length: int
    margin: int
    step: int = 1


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


def blocks_of(shape: tuple[int, ...], header: Description) -> list[Block]:
    """The blocks of an image (H, W) that a prior restores in tiles, or as a whole."""
    if header.whole:
        return _crossed(*(_alike(size, into_blocks(header)) for size in shape))
    return _crossed(*(_of_tiles(size, side, header) for size, side in zip(shape, header.image_shape, strict=True)))


def parts_of(shape: tuple[int, ...], header: Description, side: int = PART_SIDE) -> list[Block]:
    """The parts of a block for a prior that takes each as an image: all of one size, with what is around them."""
    return _crossed(*(_alike(size, into_parts(header, side)) for size in shape))


def into_blocks(header: Description) -> Cutting:
    """How a prior that takes a block as one image has large images cut."""
    return Cutting(CORE_SIDE, _margin(header, CORE_MARGIN))


def into_parts(header: Description, side: int = PART_SIDE) -> Cutting:
    """How a block is cut into parts.

    Their sides are about as many places of the finest layer; of a page, twice as many, for its margins are wider. The
    sides of a page are whole steps of the coarsest layer, as in training, and so are those of its parts, which begin at
    whole steps: what is coarser is then what it is without parts.
    """
    if not header.kind.pages:
        return Cutting(side * header.layers[0].stride, _margin(header, PART_MARGIN))
    return Cutting(2 * side * header.layers[0].stride, _margin(header, PART_MARGIN), coarsest(header))


def _margin(header: Description, least: int) -> int:
    return max(least, MARGIN_STEPS * coarsest(header))


def coarsest(header: Description) -> int:
    """The pixels between places of the coarsest layer, at the smallest size at which it is read."""
    return header.step * SOLVERS[header.inference.solver].coarser


def _crossed(rows: list[Span], columns: list[Span]) -> list[Block]:
    return [Block((top, left), (above, before)) for (top, above), (left, before) in product(rows, columns)]


def _of_tiles(size: int, side: int, header: Description) -> list[Span]:
    """Spans of an axis that begin at whole strides, each with all tiles that hold some of its pixels.

    What is around a span is longer than a tile, for a shorter axis would lie in the middle of one.
    """
    stride = -(-side // min(header.overlap, side))
    margin = -(-side // stride) * stride
    count = -(-size // max(stride, TILES * stride - 2 * margin))
    step = -(-size // (count * stride)) * stride
    cores = [slice(first, min(first + step, size)) for first in range(0, size, step)]
    return [(core, slice(max(0, core.start - margin), min(size, core.stop + margin))) for core in cores]


def _alike(size: int, cutting: Cutting) -> list[Span]:
    """Equally long spans of an axis that overlap by at least twice the margin: the middle of each, and all of it."""
    length, margin, step = cutting
    count = max(1, -(-(size - 2 * margin) // length))
    whole = -(-(size + 2 * margin * (count - 1)) // (count * step)) * step
    starts = (step * np.linspace(0, (size - whole) // step, count).round()).astype(int).tolist()
    cuts = [0, *((left + right + whole) // 2 for left, right in pairwise(starts)), size]
    return [(slice(*core), slice(start, start + whole)) for start, core in zip(starts, pairwise(cuts), strict=True)]
