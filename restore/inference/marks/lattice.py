"""Lattices: the largest among the centres of pieces that are about as large.

Spacing and angle are where the autocorrelation of the centres has its peaks; the lattice then grows from the piece that
has most neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.inference.marks.pieces import around

# The fewest pieces of a lattice, rows of three and more in both directions, and the widest spacing in pixels.
FEWEST_DOTS, FEWEST_ROWS, WIDEST_PITCH = 60, 4, 28


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


def lattice_of(centres: np.ndarray) -> Lattice | None:
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
    if len(chosen) < FEWEST_DOTS or rows < FEWEST_ROWS:
        return None
    return Lattice(chosen, frame, cells)


def placed(centres: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells of centres, (N, 2), in steps of a frame, and how many pixels they are off the nearest ones, (N,)."""
    cells = np.linalg.solve(frame[1:].T, (centres - frame[0]).T).T
    return cells, np.abs((cells - np.rint(cells)) @ frame[1:]).max(1)


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
    near = (np.abs(pairs - place).max(1) <= 1.2 for place in peaks)  # one by one: a halftone has hundreds of peaks
    exact = (pairs[which].mean(0) for which in near if which.any())
    one = next(exact, np.zeros(2))
    for other in exact:
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
        cells, off = placed(centres, frame)
        whole = np.rint(cells).astype(int)
        which = (off <= max(0.75, 0.2 * np.hypot(*frame[1]))) & (np.abs(cells).max(1) <= reach)
        if np.linalg.matrix_rank(whole[which] - whole[which].mean(0)) < 2:
            return None
        new = np.linalg.lstsq(np.c_[np.ones(which.sum()), whole[which]], centres[which], rcond=None)[0]
        if abs(np.linalg.det(new[1:])) < 4:
            return None
        frame, reach = new, 1.8 * reach
    return which, frame, whole
