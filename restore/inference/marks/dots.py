"""Patterns: dots, or short dashes, on a lattice behind what is drawn; they are judged as a group, all or none.

Spacing and angle are where the autocorrelation of the centres of small pieces has its peaks; the lattice then grows
from the piece that has most neighbours. A pattern lies behind print: halftones, dot-matrix print, Braille and code
modules have none among their dots, and leaders are no lattice, as they have one direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.inference.marks.pieces import DITHERED, Pieces, around

# The fewest dots of a pattern, and rows of three and more in both directions; the size of the largest in pixels, and
# the widest spacing.
FEWEST_DOTS, FEWEST_ROWS, LARGEST_DOT, WIDEST_PITCH = 60, 4, 24, 28

# More pieces than this are a halftone of a whole page.
MOST_DOTS = 40_000

# Patterns of a picture, at most; sizes of dots that are tried, and by which part they vary.
PATTERNS, SIZES, NEARLY = 6, 3, 0.35

# Shares of sites that have a dot, of those that are free; and of dots that are alike. And the dots that print covers,
# of all, without which a pattern is no ground of print, but a drawing.
FULL, EQUAL, UNDER_PRINT = 0.7, 0.65, 0.01

# Dots of other sizes are up to so many times as large.
LARGER = 8

# Cells beyond a lattice, and pixels from its sites, within which dots of other sizes belong to it.
BEYOND, OFF_SITE = 6, 0.75

# Half of the side of the window in which the usual dot of a lattice is measured.
DOT_REACH = 3


@dataclass(frozen=True, eq=False)
class Lattice:
    """Pieces on a lattice.

    Attributes:
        which: their numbers, (n,).
        frame: the origin, and the two steps, (3, 2) in pixels.
        cells: the place of each piece in steps, (n, 2).
    """

    which: np.ndarray
    frame: np.ndarray
    cells: np.ndarray


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern of dots.

    Attributes:
        mask: its pixels of ink, boolean (H, W).
        count: how many dots it has.
        behind: True if print lies over some of them.
    """

    mask: np.ndarray
    count: int
    behind: bool


def patterns(ink: np.ndarray, whole: np.ndarray) -> list[Pattern]:
    """The patterns of dots of a picture with these components."""
    pieces, found = Pieces.of(ink, LARGEST_DOT, whole), list[Pattern]()
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


def _largest(pieces: Pieces, free: np.ndarray) -> Lattice | None:
    """The largest lattice of pieces of about one size, of the sizes that are most common."""
    sizes, sides, best = pieces.sizes[free], (pieces.boxes[:, 2:] - pieces.boxes[:, :2])[free], None
    for size in np.argsort(-np.bincount(sizes, minlength=1), kind="stable")[:SIZES]:
        if not (sizes == size).any():
            continue
        high = np.abs(sides - np.median(sides[sizes == size], 0)).max(1) <= 1
        same = free[high & (np.abs(sizes - size) <= max(1.5, NEARLY * size))]
        lattice = _lattice(pieces.centres[same]) if len(same) >= FEWEST_DOTS else None
        if lattice is not None and (best is None or len(lattice.which) > len(best.which)):
            best = replace(lattice, which=same[lattice.which])
    return best


def _pattern(ink: np.ndarray, whole: np.ndarray, pieces: Pieces, lattice: Lattice) -> Pattern | None:
    """The pattern of a lattice, if its dots are alike and have few gaps; those that print covers included."""
    own, sites = pieces.mask(np.isin(np.arange(pieces.count), lattice.which)), _sites(lattice, ink.shape)
    seen, unlike, owned = (_around_sites(values, sites) for values in (ink, _other(ink, whole, own), own))
    middle = np.s_[:, DOT_REACH - 1 : DOT_REACH + 2, DOT_REACH - 1 : DOT_REACH + 2]
    dotted = owned[middle].any((1, 2))
    other = unlike[middle].any((1, 2)) & ~dotted
    covered = seen[middle].any((1, 2)) & ~(dotted | other)
    full = dotted.sum() / max(1, (~covered).sum())
    count = len(lattice.which)
    if full < FULL or count < EQUAL * max((dotted | other).sum(), _on(lattice, pieces.centres[pieces.dark])):
        return None
    mask, stamp = own.copy(), owned[dotted].mean(0) > 0.25
    for row, column in sites[covered | other]:  # the usual dot at each site under print
        _draw(mask, stamp, row - DOT_REACH, column - DOT_REACH)
    return Pattern(mask & ink, count, bool(covered.sum() >= UNDER_PRINT * count))


def _on(lattice: Lattice, centres: np.ndarray) -> int:
    """How many centres, (N, 2), lie on a lattice where it is, or a few cells further: of dots of all sizes."""
    cells = np.linalg.solve(lattice.frame[1:].T, (centres - lattice.frame[0]).T).T
    off = np.abs((cells - np.rint(cells)) @ lattice.frame[1:]).max(1)
    low, high = lattice.cells.min(0) - BEYOND, lattice.cells.max(0) + BEYOND
    return int(((off <= OFF_SITE) & ((cells >= low) & (cells <= high)).all(1)).sum())


def _other(ink: np.ndarray, whole: np.ndarray, own: np.ndarray) -> np.ndarray:
    """What may be dots of other sizes: all small pieces of ink, and the centres of larger ones, as of a halftone."""
    larger = Pieces.of(ink, LARGER * LARGEST_DOT, whole)
    centres = np.zeros(ink.shape, bool)
    wanted = larger.dark & (larger.sizes > LARGEST_DOT)
    centres[tuple(np.rint(larger.centres[wanted]).astype(int).T)] = True
    return np.asarray(larger.mask(larger.dark & ~wanted) & ~own | centres)


def _draw(mask: np.ndarray, stamp: np.ndarray, top: int, left: int) -> None:
    rows, columns = (slice(max(0, at), max(0, at + len(stamp))) for at in (top, left))
    part = mask[rows, columns]
    part |= stamp[max(0, -top) :, max(0, -left) :][: part.shape[0], : part.shape[1]]


def _around_sites(values: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Windows of a picture around places, (n, 2 DOT_REACH + 1, 2 DOT_REACH + 1)."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, DOT_REACH), (2 * DOT_REACH + 1,) * 2)
    return np.asarray(windows[sites[:, 0], sites[:, 1]])


def _sites(lattice: Lattice, shape: tuple[int, ...]) -> np.ndarray:
    """All places of a lattice in pixels, gaps under print included: a closing of its cells."""
    low = lattice.cells.min(0) - 6
    grid = np.zeros(lattice.cells.max(0) - low + 7, bool)
    grid[tuple((lattice.cells - low).T)] = True
    cells = np.argwhere(around(around(grid, 3) == 0, 3) == 0) + low
    # Centres of dots lie on pixels or half between: a quarter keeps both away from the edge of rounding.
    sites = np.floor(lattice.frame[0] + cells @ lattice.frame[1:] + 0.25).astype(int)
    return np.asarray(sites[((sites >= 0) & (sites < shape)).all(1)])


def _lattice(centres: np.ndarray) -> Lattice | None:
    """The largest lattice among centres, (N, 2), if there is one."""
    pairs, owner = _neighbours(centres)
    steps = _steps(pairs)
    if steps is None:
        return None
    fits = (np.abs(pairs[:, None] - steps).max(2) <= 1).any(1)
    if not fits.any():
        return None
    frame = np.concatenate([centres[None, np.bincount(owner[fits]).argmax()], steps])
    grown = _grown(centres, frame)
    if grown is None:
        return None
    which, frame, whole = grown
    places = tuple((whole[which] - whole[which].min(0)).T)
    grid = np.zeros(np.max(places, 1) + 1, bool)
    grid[places] = True
    chosen = np.flatnonzero(which)[around(grid, 1)[places] >= 4]
    cells = whole[chosen]
    rows = min(int((np.unique(line, return_counts=True)[1] > 2).sum()) for line in cells.T)
    return Lattice(chosen, frame, cells) if len(chosen) >= FEWEST_DOTS and rows >= FEWEST_ROWS else None


def _neighbours(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps from a centre to others that are near and below, (M, 2), and whose they are, (M,)."""
    order = np.argsort(centres[:, 0], kind="stable")
    sorted_, steps, owner = centres[order], [np.zeros((0, 2))], [np.zeros(0, int)]
    last = np.searchsorted(sorted_[:, 0], sorted_[:, 0] + WIDEST_PITCH, "right")
    for ahead in range(1, int((last - np.arange(len(order))).max(initial=1))):
        apart = sorted_[ahead:] - sorted_[:-ahead]
        near = np.abs(apart).max(1) <= WIDEST_PITCH
        steps.append(apart[near])
        owner.append(order[:-ahead][near])
    return np.concatenate(steps), np.concatenate(owner)


def _steps(pairs: np.ndarray) -> np.ndarray | None:
    """The two shortest steps, (2, 2), at which neighbours lie often, and which have different directions."""
    bins = np.zeros((WIDEST_PITCH + 2, 2 * WIDEST_PITCH + 3))
    down, across = np.rint(pairs).astype(int).T
    np.add.at(bins, (down, across + WIDEST_PITCH + 1), 1)
    sums = _summed(bins)
    if not sums.any():
        return None
    peaks = [place for place in np.argwhere(sums > 0.4 * sums.max()) - [0, WIDEST_PITCH + 1] if tuple(place) > (0, 0)]
    peaks = [place for place in peaks if place @ place >= 9]
    peaks.sort(key=lambda place: place @ place - 1e-3 * sums[place[0], place[1] + WIDEST_PITCH + 1])
    near = [np.abs(pairs - place).max(1) <= 1.2 for place in peaks]
    exact = [pairs[which].mean(0) for which in near if which.any()]
    for other in exact[1:]:
        one = exact[0]
        if abs(one[0] * other[1] - one[1] * other[0]) > 0.5 * np.hypot(*one) * np.hypot(*other):
            return np.stack([one, other])
    return None


def _summed(bins: np.ndarray) -> np.ndarray:
    """Sums over squares of three bins."""
    padded = np.pad(bins, 1)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum((2, 3))


def _grown(centres: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Which centres lie on a lattice, the frame that fits them best, and the cells of all; fitted ever further."""
    reach = 2.5
    for _ in range(12):
        cells = np.linalg.solve(frame[1:].T, (centres - frame[0]).T).T
        whole = np.rint(cells).astype(int)
        off = np.abs((cells - whole) @ frame[1:]).max(1)
        which = (off <= max(0.75, 0.2 * np.hypot(*frame[1]))) & (np.abs(cells).max(1) <= reach)
        if np.linalg.matrix_rank(whole[which] - whole[which].mean(0)) < 2:
            return None
        new = np.linalg.lstsq(np.c_[np.ones(which.sum()), whole[which]], centres[which], rcond=None)[0]
        if abs(np.linalg.det(new[1:])) < 4:
            return None
        frame, reach = new, 1.8 * reach
    return which, frame, whole
