"""Where a picture is bare, so that what lies there tells of dirt; and whether it is a page of print."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.inference.marks.pieces import Pieces, around, closed, counted

# Pixels between bare ground and whatever is drawn, or the height of the usual letter if that is more: words are not
# further apart; and the share of the pixels as near as that which pieces of small type cover: its letters are no larger
# than specks, but stand among others.
AWAY, COVERED_BY_TYPE = 12, 0.05

# Squares that reach so many times as far as that fit into bare ground, or it is a gap between lines or words, in which
# short words of small type lie, as on pages of thin Arabic.
WIDER = 3

# Other pieces are a crowd, such as leaders and dots of a map, where in the square that reaches `CROWD` pixels, or in a
# strip as large, as many lie as are no chance if pieces lie everywhere as on the emptiest fifth.
CROWD, EMPTIER = 15, 0.2

# Nats from which no chance explains that there are so many.
NO_CHANCE = 6.0

# A page of print has so many letters at least: components of ink that are from a third to three times as high as the
# usual one, on so large a share of its ink.
LETTERS, OF_LETTERS, ALIKE_HIGH = 60, 0.5, 3.0

# A speck whose pixels are no further from what is drawn would often touch it.
TOUCHING = 2

# The least height of a letter, in pixels.
LEAST_HEIGHT = 5

# Pixels from which letters of a grey page are high enough for black and white. Of lower ones, under noise of .03,
# Tesseract misreads 14 to 30 % in black and white, 8 % at most in grey (by hand, in fonts of no prior).
HIGH_ENOUGH = 7


def excess(count: np.ndarray, expected: np.ndarray | float) -> np.ndarray:
    """Nats by which events are more than expected: n of e or more have the probability exp(-nats) at most (Chernoff).

    >>> excess(np.array([0, 2, 20]), 2.0).round(1).tolist()
    [0.0, 0.0, 28.1]
    """
    least = np.maximum(expected, 1e-3)
    more = np.maximum(count, least)
    return np.asarray(more * np.log(more / least) - more + least)


@dataclass(frozen=True, eq=False)
class Ground:
    """What a picture is, apart from its marks.

    Attributes:
        bare: pixels that are far from all that is drawn, and among few pieces, boolean (H, W).
        near: others that are near what is drawn, and not so near that a speck there would touch it, boolean (H, W).
        letter: the area, in pixels, of the letter of the usual pixel of ink; 0 where there are none.
        print: True for a page of print.
    """

    bare: np.ndarray
    near: np.ndarray
    letter: float
    print: bool

    @classmethod
    def of(cls, ink: np.ndarray, whole: np.ndarray, pieces: Pieces) -> Ground:
        """The ground of a picture of these components and small pieces."""
        drawn = ink ^ pieces.inside  # small pieces are taken out, dark and light ones alike
        edges = np.zeros(ink.shape, bool)
        down, right = drawn[1:] != drawn[:-1], drawn[:, 1:] != drawn[:, :-1]
        for part, differs in ((np.s_[1:], down), (np.s_[:-1], down), (np.s_[:, 1:], right), (np.s_[:, :-1], right)):
            edges[part] |= differs
        height, letter, print = letters(ink, whole)
        away = max(AWAY, height if print else 0)
        near = (around(edges, away) > 0) & (around(drawn, TOUCHING) == 0)
        edges |= pieces.inside & (around(pieces.inside, AWAY) > COVERED_BY_TYPE * (2 * AWAY + 1) ** 2)
        edges |= closed(edges, WIDER * away)
        edges |= pieces.mask(_crowded(pieces, around(edges, away) == 0))
        return cls(around(edges, away) == 0, near, letter, print)


def _crowded(pieces: Pieces, free: np.ndarray) -> np.ndarray:
    """Which pieces have more others on free ground around them than are to be expected, (N,)."""
    places = np.zeros(free.shape, bool)
    rows, columns = np.rint(pieces.centres).astype(int).T
    places[rows, columns] = free[rows, columns]
    slim = LEAST_HEIGHT // 2
    long = ((2 * CROWD + 1) ** 2 // LEAST_HEIGHT - 1) // 2
    windows = (CROWD, CROWD), (slim, long), (long, slim)
    count = around(places, *windows[0])
    for reach in windows[1:]:  # one at a time, as each is as large as the picture
        np.maximum(count, around(places, *reach), out=count)
    often = counted(count, free)
    every = np.arange(len(often))
    expected = float(np.searchsorted(often.cumsum(), EMPTIER * often.sum()))
    crowd = np.zeros(len(often), bool)
    for _ in range(3):
        crowd = excess(every, expected) > NO_CHANCE
        rest = np.where(crowd, 0, often)
        expected = float(rest @ every) / max(1, int(rest.sum()))
    return np.asarray(crowd[count[rows, columns]])


def letters(ink: np.ndarray, whole: np.ndarray) -> tuple[int, float, bool]:
    """The height and area of the usual letter, and whether there are so many that a picture is a page of print."""
    sizes, usual, alike = as_high_as_letters(ink, whole)
    if not alike.any():
        return 0, 0.0, False
    share = sizes[alike].sum() / ink.sum()
    # Of the usual pixel of ink: specks are many, and hold little of it.
    order = np.sort(sizes[alike])
    area = order[np.searchsorted(order.cumsum(), order.sum() / 2)]
    return usual, float(area), bool(alike.sum() >= LETTERS and share >= OF_LETTERS)


def as_high_as_letters(ink: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """The size of each component of ink by its number, the usual height of a letter, and which are about as high."""
    rows, owner = np.nonzero(ink)[0], whole[ink]
    sizes = np.bincount(owner, minlength=1)
    top, bottom = np.zeros((2, len(sizes)), int)
    top[owner[::-1]], bottom[owner] = rows[::-1], rows + 1  # rows ascend, and the last that is set stays
    heights = bottom - top
    likely = heights >= LEAST_HEIGHT
    usual = np.median(heights[likely]) if likely.any() else 0.0
    return sizes, int(usual), likely & (heights * ALIKE_HIGH >= usual) & (heights <= ALIKE_HIGH * usual)
