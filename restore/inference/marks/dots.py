"""Patterns: dots, or short dashes, on a lattice behind what is drawn; they are judged as a group, all or none.

A place of the lattice has a dot if there is ink wherever the usual dot has some, be it that print touches or covers it,
and most places around have one, too: so a pattern ends where it was drawn. A pattern lies behind print: halftones,
dot-matrix print, Braille and code modules have none among their dots, nor have leaders, which stand in rows that are
further apart than their dots are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.inference.marks.ground import NO_CHANCE, excess
from restore.inference.marks.lattice import FEWEST_DOTS, Lattice, lattice_of, placed
from restore.inference.marks.pieces import DITHERED, Pieces, around

# More pieces than this are a halftone of a whole page.
MOST_DOTS = 40_000

# Patterns of a picture, and sizes of dots that are tried for each, at most.
PATTERNS = 6

# The share of free sites that have a dot.
FULL = 0.7

# Rows are at most so many times as far apart as their dots, or these are leaders; and the covariance of neighbouring
# sizes, in octaves, from which a pattern has shades.
APART, SHADES = 1.5, 1 / 8

# Cells beyond a lattice, and pixels from its sites, within which dots of other sizes belong to it.
BEYOND, OFF_SITE = 6, 0.75

# Half of the side of the window in which the usual dot of a lattice is measured; no dot is larger than it.
DOT_REACH = 3


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern of dots.

    Attributes:
        mask: its pixels of ink, boolean (H, W).
        count: how many dots it has that stand alone.
        behind: True if print lies over some of them.
    """

    mask: np.ndarray
    count: int
    behind: bool


@dataclass(frozen=True, eq=False)
class Sites:
    """All places of a lattice in a picture, a few beyond its pieces included.

    Attributes:
        shape: the numbers of its rows and columns.
        cells: the row and column of each place, (n, 2).
        places: the pixel at its centre, or above and left of it, (n, 2).
    """

    shape: tuple[int, int]
    cells: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, lattice: Lattice, centres: np.ndarray, shape: tuple[int, ...]) -> Sites:
        """Those of a lattice with these centres, (N, 2); they lie on pixels, or half between."""
        low = lattice.cells.min(0) - BEYOND
        rows, columns = lattice.cells.max(0) - low + BEYOND + 1
        cells = np.indices((rows, columns)).reshape(2, -1).T
        between = (2 * centres[lattice.which] % 2).mean(0) >= 0.5
        centre = lattice.frame[0] + (cells + low) @ lattice.frame[1:]
        places = np.floor(centre + 0.5 - between / 2).astype(int)
        inside = ((places >= 0) & (places < shape)).all(1)
        return cls((rows, columns), cells[inside], places[inside])

    def windows(self, values: np.ndarray) -> np.ndarray:
        """The windows of a picture around places, (n, 2 DOT_REACH + 1, 2 DOT_REACH + 1)."""
        padded = np.pad(values, DOT_REACH, "edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * DOT_REACH + 1,) * 2)
        return np.asarray(windows[self.places[:, 0], self.places[:, 1]])

    def near(self, which: np.ndarray) -> np.ndarray:
        """How many of some places, boolean (n,), there are within two steps of each, (n,)."""
        return np.asarray(around(self._grid(which), 2)[tuple(self.cells.T)])

    def within(self, which: np.ndarray) -> np.ndarray:
        """True for places among such, with gaps, as of a blank line, closed, (n,)."""
        return np.asarray((around(around(self._grid(which), 3) == 0, 3) == 0)[tuple(self.cells.T)])

    def _grid(self, which: np.ndarray) -> np.ndarray:
        grid = np.zeros(self.shape, bool)
        grid[tuple(self.cells[which].T)] = True
        return grid


def patterns(ink: np.ndarray, whole: np.ndarray) -> list[Pattern]:
    """The patterns of dots of a picture with these components."""
    pieces, found = small_pieces(ink, whole), list[Pattern]()
    free = np.flatnonzero(pieces.dark)
    if (~pieces.dark).sum() > DITHERED * ink.size or len(free) > MOST_DOTS:
        return found
    for _ in range(PATTERNS):
        lattice = _largest(pieces, free)
        if lattice is None:
            break
        pattern = _pattern(ink, whole, pieces, lattice)
        found += [pattern] if pattern else []
        free = np.setdiff1d(free, lattice.which)
    return found


def small_pieces(ink: np.ndarray, whole: np.ndarray) -> Pieces:
    """The pieces of a picture that may be dots."""
    return Pieces.of(ink, (2 * DOT_REACH + 1) ** 2, whole)


def _largest(pieces: Pieces, free: np.ndarray) -> Lattice | None:
    """The largest lattice of pieces as high and as wide, within a pixel, of the sizes that are most common."""
    sizes, sides, best = pieces.sizes[free], (pieces.boxes[:, 2:] - pieces.boxes[:, :2])[free], None
    for size in np.argsort(-np.bincount(sizes, minlength=1), kind="stable")[:PATTERNS]:
        if not (sizes == size).any():
            continue
        high = np.abs(sides - np.median(sides[sizes == size], 0)).max(1) <= 1
        same = free[high]
        lattice = lattice_of(pieces.centres[same]) if len(same) >= FEWEST_DOTS else None
        if lattice is not None and (best is None or len(lattice.which) > len(best.which)):
            best = replace(lattice, which=same[lattice.which])
    return best


def _pattern(ink: np.ndarray, whole: np.ndarray, pieces: Pieces, lattice: Lattice) -> Pattern | None:
    """The pattern of a lattice, if its dots are alike and have few gaps; those that print covers included."""
    sites = Sites.of(lattice, pieces.centres, ink.shape)
    own = pieces.mask(np.isin(np.arange(pieces.count), lattice.which))
    owned = sites.windows(own)
    dotted = owned[:, DOT_REACH - 1 : DOT_REACH + 2, DOT_REACH - 1 : DOT_REACH + 2].any((1, 2))
    dot = owned[dotted].mean(0)
    core = dot > FULL
    if not core.any():
        return None
    filled, beside = _seen(sites.windows(ink), core)
    telling = dotted | ~(filled & (beside == 1))  # where all is ink, as in a thick stroke, nothing tells of a dot
    filled |= dotted
    held = filled & telling & (2 * sites.near(filled & telling) > sites.near(telling))
    alone = held & (dotted | (beside == 0))
    behind = bool((held & ~alone).any())
    blank = sites.within(held) & ~filled
    if not _even(lattice) or alone.sum() < max(FEWEST_DOTS, FULL * (alone | blank).sum()):
        return None
    if _joined(lattice, pieces) or _shaded(lattice, small_pieces(ink, whole)) > SHADES:
        return None
    mask = own.copy()
    for row, column in sites.places[held & ~dotted]:
        _draw(mask, dot > 0.25, row - DOT_REACH, column - DOT_REACH)
    return Pattern(mask & ink, int(alone.sum()), behind)


def _seen(windows: np.ndarray, core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether there is ink wherever a dot has some, (n,); and on what share of the pixels around that."""
    rim = (around(core, 1) > 0) & ~core
    return windows[:, core].mean(1) > FULL, windows[:, rim].mean(1)


def _even(lattice: Lattice) -> bool:
    """True if its rows are about as far apart as the pieces in them."""
    short, long = sorted(np.hypot(*lattice.frame[1:].T))
    return bool(long <= APART * short)


def _joined(lattice: Lattice, pieces: Pieces) -> bool:
    """True if most light pieces stand in the middle between dots, as where a halftone is dark, so that its dots join.

    Those that print encloses stand anywhere.
    """
    middle = lattice.frame[1:].sum(0) / 2
    cells, off = placed(pieces.centres[~pieces.dark] - middle, lattice.frame)
    within = ((cells >= lattice.cells.min(0) - 1) & (cells <= lattice.cells.max(0))).all(1)
    by_chance = (2 * OFF_SITE) ** 2 / abs(np.linalg.det(lattice.frame[1:]))
    between = (within & (off <= OFF_SITE)).sum()
    return bool(2 * between > within.sum() and excess(between, by_chance * within.sum()) > NO_CHANCE)


def _shaded(lattice: Lattice, pieces: Pieces) -> float:
    """The covariance of the sizes of neighbours on a lattice, in octaves: the dots of a halftone follow its shades.

    Pieces of all sizes count that lie on it where it is, or a few cells further.
    """
    cells, off = placed(pieces.centres, lattice.frame)
    whole = np.rint(cells).astype(int) - lattice.cells.min(0) + BEYOND
    shape = np.ptp(lattice.cells, 0) + 2 * BEYOND + 1
    on = pieces.dark & (off <= OFF_SITE) & (whole >= 0).all(1) & (whole < shape).all(1)
    octaves = np.full(shape, np.nan)
    octaves[tuple(whole[on].T)] = np.log2(pieces.sizes[on])
    octaves -= np.nanmean(octaves)
    down = octaves[1:] * octaves[:-1]
    across = octaves[:, 1:] * octaves[:, :-1]
    return float(np.nanmean(np.concatenate([down.ravel(), across.ravel()])))


def _draw(mask: np.ndarray, stamp: np.ndarray, top: int, left: int) -> None:
    rows, columns = (slice(max(0, at), max(0, at + len(stamp))) for at in (top, left))
    part = mask[rows, columns]
    part |= stamp[max(0, -top) :, max(0, -left) :][: part.shape[0], : part.shape[1]]
