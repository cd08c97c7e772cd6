"""Light streaks: narrow bands across the whole picture that have lost their ink, as of a scratch or of dead dots.

A band that is blank from edge to edge may be a gap of the layout, too, as between cells, or letters that are all
equally wide. It is a streak where the picture has few such bands, strokes go on across this one more often than if what
ends on one side had nothing to do with the other, and a prior that does not see it expects about as much ink as there
is around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from restore.inference.marks.ground import excess
from restore.inference.marks.lines import SHORTEST, THICKEST, runs

# The part of its length in which a band is blank, and the most bands of a picture that has streaks; and the steepest,
# in columns to a row. They are as thick as dark lines.
BLANK_PART, MOST_BANDS = 0.95, 12
STEEPEST = 1 / 128

# The fewest strokes that end at either side; nats by which more of them meet than by chance, which is as many as meet
# if one side is moved along the other by so many rows; and the ink that the prior expects, of that in columns around.
FEWEST_STROKES, MET, EXPECTED = 14, 2.0, 0.65
MOVED = [rows for rows in range(-40, 41) if abs(rows) > 3]

# Columns on each side of a band that are looked at; a run of ink as long is no stroke, nor a line yet.
AROUND = SHORTEST // 4

# Rows that are looked at together: the steepest band leans by a sixteenth of a pixel in them.
ROWS_TOGETHER = 8

# Gives the probability of ink for (a picture of ink, where it is hidden), all (H, W).
Expected = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Band:
    """The columns from `left` to before `right` at half the height, which lean by `slope` columns a row."""

    left: int
    right: int
    slope: float

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        """Its pixels, boolean (H, W)."""
        columns = np.arange(shape[1]) - _lean(shape[0], self.slope)
        return np.asarray((columns >= self.left) & (columns < self.right))


def streaks(ink: np.ndarray, expected: Expected) -> list[np.ndarray]:
    """The pixels of each upright light streak, or nearly so, boolean (H, W)."""
    bands = _blank_bands(ink)
    if len(bands) > MOST_BANDS:
        return []
    return [band.mask(ink.shape) for band in bands if _cuts(band, _upright(ink, band.slope), expected)]


def _blank_bands(ink: np.ndarray) -> list[Band]:
    """Narrow bands that are blank from edge to edge, and have ink on both sides; the widest of those that overlap."""
    found, kept = list[Band](), list[Band]()
    inked = _by_rows(ink)
    steps = int(STEEPEST * len(ink) / 2)  # each moves the ends by a pixel
    slopes = 2 / len(ink) * np.arange(-steps, steps + 1)
    for slope in sorted(slopes, key=abs):
        drawn = np.pad(_upright(inked, slope * ROWS_TOGETHER).mean(0) > 1 - BLANK_PART, 1)
        edges = np.flatnonzero(drawn[1:] != drawn[:-1])
        gaps = edges[1:-1].reshape(-1, 2).tolist()
        found += [Band(left, right, float(slope)) for left, right in gaps if right - left <= THICKEST]
    for band in sorted(found, key=lambda band: band.left - band.right):
        if all(band.right <= one.left or one.right <= band.left for one in kept):
            kept.append(band)
    return kept


def _by_rows(ink: np.ndarray) -> np.ndarray:
    """Whether there is ink in each column of so many rows at once."""
    whole = np.pad(ink, ((0, -len(ink) % ROWS_TOGETHER), (0, 0)))
    return np.asarray(whole.reshape(-1, ROWS_TOGETHER, ink.shape[1]).any(1))


def _cuts(band: Band, ink: np.ndarray, expected: Expected) -> bool:
    """True if strokes go on across an upright band, and a prior expects them there; rules are none."""
    first = max(0, band.left - AROUND)
    near = ink[:, first : band.right + AROUND]
    left = band.left - first
    right = band.right - first
    strokes = near & (runs(near) < AROUND)
    before = np.asarray(strokes[:, max(0, left - 2) : left].any(1))
    after = np.asarray(strokes[:, right : right + 2].any(1))
    by_chance = float(np.mean([_count(np.roll(before, rows) & after) for rows in MOVED]))
    met = float(excess(np.array(_count(before & after)), by_chance))
    if min(_count(before), _count(after)) < FEWEST_STROKES or met < MET:
        return False
    hidden = np.zeros(near.shape, bool)
    hidden[:, left:right] = True
    return bool(expected(near, hidden)[hidden].mean() >= EXPECTED * near[~hidden].mean())


def _count(column: np.ndarray) -> int:
    """How many strokes of ink a column has."""
    return int(column[:1].sum() + (column[1:] & ~column[:-1]).sum())


def _upright(ink: np.ndarray, slope: float) -> np.ndarray:
    """A picture in which columns that lean by `slope` are upright; beyond its sides there is nothing."""
    columns = np.arange(ink.shape[1]) + _lean(len(ink), slope)
    inside = (columns >= 0) & (columns < ink.shape[1])
    return np.asarray(np.take_along_axis(ink, columns.clip(0, ink.shape[1] - 1), 1) & inside)


def _lean(height: int, slope: float) -> np.ndarray:
    """By how many columns each row is moved, (H, 1)."""
    return np.rint(slope * (np.arange(height) - (height - 1) / 2)).astype(int)[:, None]
