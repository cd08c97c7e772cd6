"""Leaders: rows of dots, as from a heading to the number of its page, that are content whatever else they look like."""

from __future__ import annotations

import numpy as np

from restore.inference.marks.lattice import WIDEST_PITCH
from restore.inference.marks.pieces import Pieces, around


def leading(pieces: Pieces) -> np.ndarray:
    """True for dark pieces of leaders, those included that go on with a row after a gap or a blot, boolean (N,)."""
    rows = pieces.mask(pieces.dark & in_rows(pieces))
    return pieces.dark & (pieces.mean(around(rows, 1, WIDEST_PITCH) > 0) > 0.5)


def in_rows(pieces: Pieces) -> np.ndarray:
    """True for pieces that stand in a level row of four and more, equally far apart but for a pixel, boolean (N,).

    Each is followed by the nearest one to its right, which is of its colour and no more than twice as large or small.
    """
    order = np.argsort(pieces.centres[:, 1], kind="stable")
    after = _next(pieces, order)
    gaps = pieces.centres[after, 1] - pieces.centres[:, 1]
    even = (gaps > 0) & (np.abs(gaps[after] - gaps) <= 1)
    second = after[after]
    found = np.zeros(pieces.count, bool)
    first = even & even[after]
    for one in (np.arange(pieces.count), after, second, after[second]):
        found[one[first]] = True
    return found


def _next(pieces: Pieces, order: np.ndarray) -> np.ndarray:
    """The number of the piece that follows each in its row, or its own, (N,); `order` goes from left to right."""
    (rows, columns), after = pieces.centres[order].T, np.arange(pieces.count)
    octaves = np.log2(pieces.sizes)[order] + 99 * pieces.dark[order]
    last = np.searchsorted(columns, columns + WIDEST_PITCH, "right")
    for ahead in range(int((last - np.arange(len(order))).max(initial=1)) - 1, 0, -1):  # the nearest is written last
        level = np.abs(rows[ahead:] - rows[:-ahead]) <= 1
        alike = np.abs(octaves[ahead:] - octaves[:-ahead]) <= 1
        apart = columns[ahead:] - columns[:-ahead]
        follows = np.flatnonzero(level & alike & (apart >= 2) & (apart <= WIDEST_PITCH))
        after[order[follows]] = order[follows + ahead]
    return after
