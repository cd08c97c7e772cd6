"""Specks: small pieces that are likelier dirt than part of what the prior knows, of either colour and of any size.

How many there are, how large and of what shape follows from bare ground, far from all that is drawn. There a piece is
dirt with the log-odds

    log rate - log-odds of the prior for its colour

where the rate, the number of specks to a pixel, is the likeliest by expectation and maximisation. Pieces that are alike
too often are content. Elsewhere the prior alone cannot tell a speck from a
full stop, but bare ground says how many specks of each look are to be expected: a piece is a speck if these are most of
the pieces that look so (the local false discovery rate; Efron, Large-Scale Inference, 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from restore.channels.values import probability_of
from restore.inference.marks.ground import NO_CHANCE, Ground, excess
from restore.inference.marks.pieces import DITHERED, Pieces

# Pixels of the largest speck where none is given: so many, or this share of the usual letter if that is more.
LARGEST_SPECK, OF_A_LETTER = 40, 0.4

# Dots that are drawn have the same size, dirt has any: on bare ground pieces are drawn if of all with sizes within some
# four octaves more than this share are as high and wide, but for a pixel, and nearly as large.
SAME_SIZE = 0.5

# Sides above this count as this, in pixels; and the reach of those four octaves, in half octaves.
MOST_SIDE, OCTAVES = 24, 4

# Widths of looks, for estimates of how often each is seen: in octaves of the size, in the length of the outline over
# the side of a square of the same size, and in nats of the prior.
WIDE = np.array([0.5, 0.35, 2.5])

# Pieces are judged if more than so many specks of their shape are expected among all that are drawn.
EXPECTED_FEW = 0.05

# Specks to a pixel where the caller says how large they are, so that there are some.
SAID_RATE = 1 / 2000

# The log-odds of a prior for the colours of pieces.
Judge: TypeAlias = "Callable[[Pieces], np.ndarray]"

# The rate is final once a step changes it by a smaller part than this, or after this number of steps.
STILL, STEPS = 1e-4, 200


@dataclass(frozen=True, eq=False)
class Found:
    """Pieces that are specks.

    Attributes:
        which: boolean (N,).
        lead: nats by which specks explain bare ground better than none.
        spread: the share of those that bare ground lets expect near what is drawn which was found there.
    """

    which: np.ndarray
    lead: float
    spread: float = 0.0


def largest_of(ground: Ground) -> int:
    """The size of the largest speck of a picture for which none is given."""
    return int(max(LARGEST_SPECK, OF_A_LETTER * ground.letter))


def specks_of(pieces: Pieces, judge: Judge, ground: Ground, least: float, share: float) -> Found:
    """Which pieces are specks, if these explain bare ground by more than `least` nats better than none.

    Args:
        pieces: the small pieces of a picture.
        judge: gives the log-odds of a prior for the colours of pieces, (N,). It is asked for those on bare ground, and
            then for others.
        ground: the ground of the picture.
        least: nats.
        share: of specks among the pieces near print that look alike, at least, for these to be specks.
    """
    none, area = Found(np.zeros(pieces.count, bool), 0.0), int(ground.bare.sum())
    if not area or not pieces.count or pieces.count > DITHERED * ground.bare.size:
        return none
    bare = pieces.mean(ground.bare) == 1
    drawn = np.zeros(pieces.count, bool)
    drawn[bare] = _drawn(pieces.chosen(bare))
    known = pieces.chosen(bare & ~drawn)
    if not known.count:
        return none
    odds = judge(known)
    dirt, lead = _on_bare_ground(odds, area)
    which = np.zeros(pieces.count, bool)
    which[bare & ~drawn] = dirt > 0.5
    near = ~bare & (pieces.sizes <= (ground.letter if ground.print else np.inf))
    if lead > least and near.any():
        times, others = (ground.bare.size - area) / area, pieces.chosen(near)
        # Counters of letters and what is larger than specks need no judge: no specks look so.
        near[near] = _kernel(_shapes(others), _shapes(known), dirt) * times > EXPECTED_FEW
        others = pieces.chosen(near)
        seen, looks = _looks(known, odds), _looks(others, judge(others))
        which[near] = _kernel(looks, seen, dirt) * times > share * _kernel(looks, looks, np.ones(len(looks)))
    return Found(which, lead, _spread(pieces.chosen(which), float(dirt.sum() / area), ground.near))


def specks_of_size(pieces: Pieces, judge: Judge) -> Found:
    """Which pieces are specks where the caller says how large these are: all that the prior would not expect.

    Those that are too often alike, such as dashes, are not.
    """
    own = ~_drawn(pieces)
    own[own] = judge(pieces.chosen(own)) < np.log(SAID_RATE)
    return Found(own, np.inf)


def _on_bare_ground(odds: np.ndarray, area: int) -> tuple[np.ndarray, float]:
    """The probability that each piece is a speck, at the likeliest rate, and its lead over a rate of 0 in nats."""
    rate, dirt = len(odds) / area, np.zeros(len(odds))
    for _ in range(STEPS):
        if rate * area < STILL:
            return np.zeros(len(odds)), 0.0
        dirt = probability_of(np.log(rate) - odds)
        before, rate = rate, float(dirt.sum() / area)
        if abs(rate - before) <= STILL * before:
            break
    return dirt, float(np.logaddexp(0, np.log(rate) - odds).sum() - rate * area)


def _spread(specks: Pieces, rate: float, near: np.ndarray) -> float:
    """How many of the specks to be expected in an area at a rate lie there."""
    return float((specks.mean(near) > 0.5).sum() / max(1.0, rate * near.sum()))


def _half_octaves(sizes: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(2 * np.log2(sizes)).astype(int))


def _drawn(pieces: Pieces) -> np.ndarray:
    """True for pieces that are too often alike for dirt, (N,)."""
    sides = (pieces.boxes[:, 2:] - pieces.boxes[:, :2]).clip(max=MOST_SIDE)
    halves = _half_octaves(pieces.sizes)
    bins = np.zeros((2, MOST_SIDE + 1, MOST_SIDE + 1, int(halves.max(initial=0)) + 1))
    places = pieces.dark.astype(int), sides[:, 0], sides[:, 1], halves
    np.add.at(bins, places, 1)
    near, about = bins, bins.sum((1, 2), keepdims=True)
    for axis, reach in ((1, 1), (2, 1), (3, 1)):
        near = _near(near, axis, reach)
    about = np.broadcast_to(_near(about, 3, OCTAVES), bins.shape)
    return np.asarray(excess(near[places], SAME_SIZE * about[places]) > NO_CHANCE)


def _near(bins: np.ndarray, axis: int, reach: int) -> np.ndarray:
    """Sums over bins that are at most `reach` away along an axis."""
    sums = bins.copy()
    moved = np.moveaxis(sums, axis, 0)
    original = np.moveaxis(bins, axis, 0)
    for step in range(1, min(reach, len(moved) - 1) + 1):
        moved[step:] += original[:-step]
        moved[:-step] += original[step:]
    return sums


def _looks(pieces: Pieces, odds: np.ndarray) -> np.ndarray:
    """Shape and log-odds of each piece in widths of looks, (N, 3)."""
    return np.concatenate([_shapes(pieces), odds[:, None] / WIDE[2]], 1)


def _shapes(pieces: Pieces) -> np.ndarray:
    """Size and outline of each piece in widths of looks, (N, 2); those of the two colours lie apart."""
    roots = np.sqrt(pieces.sizes)
    shapes = np.stack([np.log2(pieces.sizes) + 99 * pieces.dark, pieces.ragged / roots.clip(1)], 1)
    return np.asarray(shapes / WIDE[:2])


def _kernel(at: np.ndarray, of: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of looks `of` (M, D) near each look `at` (N, D), (N,)."""
    sums = np.zeros(len(at))
    for first in range(0, len(at), 512):
        apart = ((at[first : first + 512, None] - of) ** 2).sum(2)
        sums[first : first + 512] = np.exp(-apart / 2) @ weights
    return sums
