"""The windows that have to be solved where holes alone are filled: the rest of a picture is known.

A pixel that is seen exactly has the field `CERTAIN_FIELD`, which outweighs what the layers add: its mean is what was
seen, and its variance 0. And a machine that makes a single sweep up and down carries nothing further than the windows
of its layers reach. So a hidden pixel has the same mean in any part that shows this much around it, and begins where
units of the coarsest layer do, but for the rounding of a few sums at its far edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, product
from operator import mul

import numpy as np

from restore.channels.damage import Damage
from restore.inference.engine import Posterior
from restore.inference.tiles.blocks import PART_MARGIN, Block
from restore.zoo.description import Description

# Nothing is gained where more is around a hidden pixel, and sums over wide windows depend on the size of the picture.
FURTHEST_REACH = 2 * PART_MARGIN

# How what is known of several windows is joined.
JOINED = {"iterations": np.maximum, "residual": np.maximum, "unsettled": np.add, "tiles": np.add}


def reach_of(header: Description, damage: Damage) -> int:
    """How far a hidden pixel's mean depends on others, in whole steps; 0 if there is no bound, or others change too."""
    exact = damage.hidden is not None and not damage.touched and not (header.grey or header.task or header.kind.pages)
    settings = header.inference
    single = header.stops_as_learnt and (settings.solver, settings.max_iter) == ("up_and_down", 1)
    if not (exact and single and header.whole):
        return 0
    far = 0
    steps = [1, *accumulate((layer.stride for layer in header.layers), mul)]
    sides = [(layer.side - layer.stride) // 2 * step for layer, step in zip(header.layers, steps, strict=False)]
    for side, step in zip(sides, steps[1:], strict=True):  # from the pixel to the top, in whole places of each layer
        far = -(-(far + side) // step) * step
    reach = -(-(far + sum(sides)) // header.step) * header.step
    return reach if reach <= FURTHEST_REACH else 0


def filled(
    solve: Callable[[np.ndarray, Damage], Posterior],
    pictures: np.ndarray,
    hidden: np.ndarray,
    parts: Sequence[Block],
    reach: int,
    step: int,
) -> Posterior:
    """The posterior of pictures (N, H, W) whose visible pixels are certain.

    Args:
        solve: a prior that makes one sweep.
        pictures: 0 and 1, float32.
        hidden: boolean (N, H, W).
        parts: those in which the prior takes pictures of this size.
        reach: see `reach_of`.
        step: the pixels between units of the coarsest layer.
    """
    whole = Posterior.of_pixels(pictures.copy(), np.zeros(pictures.shape, np.float32))
    alike: dict[tuple[int, ...], list[tuple[int, Block]]] = {}
    for index, holes in enumerate(hidden):
        for block in (block for part in parts for block in needed(part, holes, reach, step)):
            alike.setdefault(holes[block.around].shape, []).append((index, block))
    for blocks in alike.values():
        seen, holes = (np.stack([of[index][block.around] for index, block in blocks]) for of in (pictures, hidden))
        _add(solve(seen, Damage(hidden=holes)), blocks, whole)
    return whole


def _add(windows: Posterior, blocks: Sequence[tuple[int, Block]], whole: Posterior) -> None:
    """Put what windows say, each of a picture by its number, into the posterior of whole pictures."""
    for number, (index, block) in enumerate(blocks):
        whole.means[index][block.core] = windows.means[number][block.inner]
        whole.variances[index][block.core] = windows.variances[number][block.inner]
    for name, join in JOINED.items():
        join.at(getattr(whole, name), [index for index, _ in blocks], getattr(windows, name))


def needed(part: Block, hidden: np.ndarray, reach: int, step: int) -> list[Block]:
    """What has to be solved of a part of a picture: nothing, windows around hidden pixels (H, W), or all of it."""
    holes = hidden[part.core]
    if not holes.any():
        return []
    rows, columns = (_cells(core, around, 2 * reach) for core, around in zip(part.core, part.around, strict=True))
    boxes = [_box(hidden, cell) for cell in product(rows, columns) if hidden[cell].any()]
    windows = [
        Block((top, left), (_window(top, part.around[0], reach, step), _window(left, part.around[1], reach, step)))
        for top, left in boxes
    ]
    return windows if _pixels(windows) < _pixels([part]) else [part]


def _cells(core: slice, around: slice, length: int) -> list[slice]:
    """Spans of a part's core that end at multiples of a length, counted from where the part begins."""
    ends = [*range(around.start + length, core.stop, length), core.stop]
    starts = [around.start, *ends[:-1]]
    spans = [slice(max(start, core.start), end) for start, end in zip(starts, ends, strict=True)]
    return [span for span in spans if span.start < span.stop]


def _box(hidden: np.ndarray, cell: tuple[slice, slice]) -> tuple[slice, slice]:
    """The rows and columns of a cell from its first hidden pixel to its last."""
    lines = (np.flatnonzero(hidden[cell].any(axis)) for axis in (1, 0))
    rows, columns = (span.start + found for span, found in zip(cell, lines, strict=True))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _window(box: slice, around: slice, reach: int, step: int) -> slice:
    """A box with what is around it in its part; it begins at a whole step, and has whole steps."""
    first = (box.start - around.start - reach) // step * step
    last = -(-(box.stop - around.start + reach) // step) * step
    return slice(max(around.start, around.start + first), min(around.stop, around.start + last))


def _pixels(blocks: Sequence[Block]) -> int:
    sides = ([span.stop - span.start for span in block.around] for block in blocks)
    return sum(height * width for height, width in sides)
