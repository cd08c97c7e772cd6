"""Lines: straight runs of ink, level or upright or nearly so, that are longer than letters and drawings have them.

A run may drift by a pixel to either side, and has short gaps. Rules of tables and staves are lines, too: nothing
tells that they are content, so lines are removed only if that is asked for. What they cross stays: letters, the heads
and beams of notes. It is told by the ink across a line, which is much longer there than the line is thick.
"""

from __future__ import annotations

import numpy as np

from restore.components import components
from restore.inference.marks.pieces import around

# The shortest line, the thickest, and the longest gap, in pixels; and how steep lines are that are looked for, as
# rows to a column, of either sign.
SHORTEST, THICKEST, GAP = 120, 7, 1
SLOPES = np.arange(-4, 5) / 128

# The share of a side of the picture that a line takes at least, or one that it meets; of its columns, where thin ink
# lies in its rows; and in one row of it.
ACROSS, THIN_PART, OWN = 0.2, 0.5, 0.25


def lines(ink: np.ndarray) -> np.ndarray:
    """The pixels of lines, boolean (2, H, W): of level ones, and of upright ones, those of what they cross included.

    Beside such as go across a part of the picture there are shorter ones that meet them, or such as do, as in a table.
    """
    across = np.stack([_level(ink, ACROSS), _level(ink.T, ACROSS).T])
    if not across.any():
        return across
    every = across | np.stack([_level(ink, 0), _level(ink.T, 0).T])
    numbers = _joined(every.any(0))
    return np.asarray(every & np.isin(numbers, numbers[across.any(0)]))


def apart(whole: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """The pixels of lines, (2, H, W), without what they cross, (H, W): other lines are no such thing."""
    level, upright = whole
    return _apart(level, ink) | _apart(upright.T, ink.T).T | level & upright


def _apart(mask: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """The pixels of level lines where ink is at most twice as long across as it is in most columns of the same line."""
    across = runs(ink.T).T
    number = _joined(mask)
    thin = mask & (across <= THICKEST)
    columns = np.zeros((number.max(initial=0) + 1, THICKEST + 1))
    np.add.at(columns, (number[thin], across[thin]), 1 / across[thin])
    usual = columns.argmax(1)
    return np.asarray(mask & (across <= 2 * usual[number]))


def count_of(mask: np.ndarray) -> int:
    """How many level lines there are, or upright ones: parts that short gaps alone divide are one.

    >>> count_of(np.array([[1, 1, 0, 1], 4 * [0], 4 * [0], 4 * [0], [0, 0, 1, 1]], bool))
    2
    """
    return len(np.unique(_joined(mask)[mask]))


def _joined(mask: np.ndarray) -> np.ndarray:
    """The components of a mask whose gaps are closed, (H, W)."""
    return components(around(mask, GAP) > 0)


def _level(ink: np.ndarray, across: float) -> np.ndarray:
    """The pixels of level lines of ink, those of what they cross included; of such as take a part of the width."""
    height, width = ink.shape
    least, found = max(SHORTEST, int(across * width)), np.zeros(ink.shape, bool)
    thin = ink & (runs(ink.T).T <= THICKEST)
    if width < least or thin.sum(1).max(initial=0) * 2 < least * THIN_PART:
        return found
    columns = np.arange(width)
    for slope in SLOPES:
        rows = np.arange(height)[:, None] + np.rint(slope * (columns - width // 2)).astype(int)
        inside = (rows >= 0) & (rows < height)
        rows = rows.clip(0, height - 1)
        kept = _straight(ink[rows, columns] & inside, thin[rows, columns] & inside, least)
        found[rows[kept], np.broadcast_to(columns, rows.shape)[kept]] = True
    return found


def _straight(ink: np.ndarray, thin: np.ndarray, least: int) -> np.ndarray:
    """The pixels of ink in level runs, which may drift by a row, that are long, and thin in most of their columns."""
    wide = _with_rows_beside(ink)
    long = runs(_closed(wide)) >= least
    if not long.any():
        return long
    every = long.sum(1).clip(1)[:, None]
    of_thin = (_with_rows_beside(thin) & long).sum(1)[:, None] / every
    own = (thin & long).sum(1)[:, None] / every
    return np.asarray(ink & long & (of_thin >= THIN_PART) & (own >= OWN))


def _with_rows_beside(mask: np.ndarray) -> np.ndarray:
    wide = mask.copy()
    wide[1:] |= mask[:-1]
    wide[:-1] |= mask[1:]
    return wide


def _closed(mask: np.ndarray) -> np.ndarray:
    """The same with gaps in rows filled up to `GAP` pixels."""
    return np.asarray(mask | (runs(~mask) <= GAP))


def runs(mask: np.ndarray) -> np.ndarray:
    """The length of the level run of each True pixel, 0 elsewhere.

    >>> runs(np.array([[True, True, False, True]])).tolist()
    [[2, 2, 0, 1]]
    """
    column = np.arange(mask.shape[1])
    before = np.maximum.accumulate(np.where(mask, -1, column), 1)
    after = np.minimum.accumulate(np.where(mask, mask.shape[1], column)[:, ::-1], 1)[:, ::-1]
    return np.where(mask, after - before - 1, 0)
