"""Remove specks: pieces of a picture that are likelier dirt than part of what the prior knows.

A speck changes its pixels together, so what pixels say of it one by one must not be counted as if they were
independent. Whole pieces are judged instead: joined pixels of one colour, as few as a speck has. A piece x of a picture
is dirt with the log-odds

    log p(inverted x | rest) - log p(x | rest) + log rate + log p(its shape | speck)

by Bayes' rule (blocks of the iterated conditional modes of Besag, J. R. Statist. Soc. B 48, 1986). The first two are a
sum over its pixels: the prior predicts one after the other from all else, with those before it inverted. So any
prior and any solver will do. The rate is that at which the pieces are likeliest, by expectation and maximisation.

A prior may be surer of a picture than it has reason to be. So its log-odds are divided by the temperature at which it
predicts best the pixels at the edges of this very picture, each from all others (pseudo-likelihood: Besag, The
Statistician 24, 1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.damage import Damage
from restore.channels.specks import LARGEST, SMALLEST, Specks, log_share
from restore.channels.values import log_odds_of, probability_of
from restore.inference.candidates import Prior

# The side in pixels of what a prior that takes any size is shown around a piece.
SHOWN_SIDE = 24

# Windows that are solved at a time.
WINDOWS_AT_ONCE = 4096

# The most pixels at edges from which the temperature is estimated.
PREDICTED = 1000

# Divisors of log-odds, in steps of .3 %; with the last, a prior counts for nothing.
TEMPERATURES = np.geomspace(1, 1e4, 3000)

# Each pixel that has one above it, and that one; each that has one on its left, and that one.
BESIDE: tuple[tuple[Any, Any], ...] = ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1]))

# Nats by which specks have to explain a picture better than none. With `conv-text` clean pages for training have 77 at
# most, found anew, and with specks on .1 % 224 at least, when 2,000 and more pixels at edges were predicted
# (`benchmarks/specks.py --tuning --pages 4 --seed 9100`).
SPECKS_MARGIN = 100.0

# Pieces of one shape are marks, such as dots of i, if as many specks have at most the probability exp(-`REPEATED`).
REPEATED = 5.0

# The rate is final once a step changes it by a smaller part than this, or after this number of steps.
RATE_TOLERANCE, RATE_STEPS = 1e-4, 500


@dataclass(frozen=True, eq=False)
class Pieces:
    """The small pieces of a picture: joined pixels of one colour, of as many pixels as a speck.

    Attributes:
        pixels: rows and columns of the pixels of all pieces, one piece after the other, (T, 2).
        owner: the piece of each, (T,), from 0.
        kind: a number for the shape and the colour of each piece, (N,).
    """

    pixels: np.ndarray
    owner: np.ndarray
    kind: np.ndarray

    @classmethod
    def of(cls, white: np.ndarray) -> Pieces:
        """The pieces of a picture, boolean (H, W)."""
        labels = np.arange(white.size, dtype=np.int64).reshape(white.shape)
        alike = [white[after] == white[before] for after, before in BESIDE]
        # In a piece no pixel is further from the first than this.
        for _ in range(LARGEST - 1):
            for (after, before), same in zip(BESIDE, alike, strict=True):
                for here, there in ((after, before), (before, after)):
                    np.minimum(labels[here], labels[there], out=labels[here], where=same)
        count = np.bincount(labels.ravel(), minlength=white.size)
        whole = (count >= SMALLEST) & (count <= LARGEST)
        for (after, before), same in zip(BESIDE, alike, strict=True):
            split = same & (labels[after] != labels[before])
            whole[labels[after][split]] = whole[labels[before][split]] = False
        places = np.flatnonzero(whole[labels.ravel()])
        places = places[np.argsort(labels.ravel()[places], kind="stable")]
        _, owner = np.unique(labels.ravel()[places], return_inverse=True)
        pixels = np.stack(np.unravel_index(places, white.shape), 1)
        pieces = cls(pixels, owner, np.zeros(0, int))
        bits = np.uint64(1) << ((pixels - pieces.corners[owner]) @ [LARGEST, 1]).astype(np.uint64)
        shapes = np.zeros(len(pieces), np.uint64)
        np.bitwise_or.at(shapes, owner, bits)
        _, kind = np.unique(np.stack([shapes, white[tuple(pixels[pieces.first].T)]], 1), axis=0, return_inverse=True)
        return cls(pixels, owner, kind.ravel())

    def __len__(self) -> int:
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    @property
    def sizes(self) -> np.ndarray:
        """The number of pixels of each piece, (N,)."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def first(self) -> np.ndarray:
        """The number of the first pixel of each piece, (N,)."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def corners(self) -> np.ndarray:
        """The uppermost row and the leftmost column of each piece, (N, 2)."""
        return np.minimum.reduceat(self.pixels, self.first) if len(self) else self.pixels

    @property
    def middles(self) -> np.ndarray:
        """The middle of each piece, (N, 2)."""
        return (self.corners + np.maximum.reduceat(self.pixels, self.first)) // 2 if len(self) else self.pixels


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A picture without its specks.

    Attributes:
        white: the probability that each pixel is white, (H, W): 0 or 1 outside pieces.
        specks: at what rate there were some.
        count: the number of removed specks.
    """

    white: np.ndarray
    specks: Specks
    count: int


def cleaned(picture: np.ndarray, prior: Prior, specks: Specks | None = None) -> Cleaned:
    """A black and white picture, (H, W), without specks; their rate is estimated if `specks` is None."""
    pieces = Pieces.of(picture > 0.5)
    odds = evidence(pieces, picture, prior)
    if specks is None:
        rate, nats = likeliest_rate(pieces, odds, picture.size)
        rate = rate if nats > SPECKS_MARGIN else 0.0
    else:
        rate = specks.rate
    dirt = probabilities(pieces, odds, rate, picture.size)
    white, index = np.array(picture, np.float64), tuple(pieces.pixels.T)
    white[index] = np.abs(white[index] - dirt[pieces.owner])
    return Cleaned(white, Specks.of_rate(rate), int((dirt > 0.5).sum()))


def evidence(pieces: Pieces, picture: np.ndarray, prior: Prior) -> np.ndarray:
    """log-odds of each piece for dirt at a rate of 1, (N,)."""
    return log_share(pieces.sizes) - log_odds(pieces, picture, prior) / temperature(pieces, picture, prior)


def temperature(pieces: Pieces, picture: np.ndarray, prior: Prior) -> float:
    """The divisor of a prior's log-odds, at least 1, estimated from pixels at edges that belong to no piece."""
    white = picture > 0.5
    edge = np.zeros(white.shape, bool)
    for after, before in BESIDE:
        differs = white[after] != white[before]
        edge[after] |= differs
        edge[before] |= differs
    edge[tuple(pieces.pixels.T)] = False
    pixels = np.argwhere(edge)
    pixels = pixels[:: max(1, -(-len(pixels) // PREDICTED))]
    numbers = np.arange(len(pixels))
    odds = log_odds(Pieces(pixels, numbers, numbers), picture, prior)
    log_p = -np.logaddexp(0, -odds / TEMPERATURES[:, None]).sum(1)
    return float(TEMPERATURES[log_p.argmax()])


def log_odds(pieces: Pieces, picture: np.ndarray, prior: Prior) -> np.ndarray:
    """log p(piece | rest) - log p(inverted piece | rest) of each piece under a prior, (N,)."""
    header = prior.engine.header
    most = (SHOWN_SIDE, SHOWN_SIDE) if header.whole else header.image_shape
    shape = np.minimum(most, picture.shape)
    corners = (pieces.middles - shape // 2).clip(0, np.array(picture.shape) - shape)
    down, right = (np.arange(length) for length in shape)
    odds = np.zeros(len(pieces.pixels))
    for first in range(0, len(odds), WINDOWS_AT_ONCE):
        steps = np.arange(first, min(first + WINDOWS_AT_ONCE, len(odds)))
        owner, rows = pieces.owner[steps], np.arange(len(steps))
        corner = corners[owner]
        where = np.ix_(rows, down, right)
        where = (corner[:, 0, None, None] + where[1], corner[:, 1, None, None] + where[2])
        windows = picture[where].astype(np.float32)
        for back in range(1, LARGEST):
            before = (steps - back).clip(0)
            own = (steps >= back) & (pieces.owner[before] == owner)
            row, column = (pieces.pixels[before] - corner)[own].T
            windows[rows[own], row, column] = 1 - windows[rows[own], row, column]
        target = (rows, *(pieces.pixels[steps] - corner).T)
        hidden = np.zeros(windows.shape, bool)
        hidden[target] = True
        means = prior.solve(windows, Damage(hidden=hidden), effort="precise").means
        odds[steps] = log_odds_of(means[target].astype(np.float64)) * np.where(windows[target] > 0.5, 1, -1)
    return np.bincount(pieces.owner, odds, minlength=len(pieces))


def probabilities(pieces: Pieces, odds: np.ndarray, rate: float, area: int) -> np.ndarray:
    """The probability that each piece is a speck, (N,), where `odds` are log-odds at a rate of 1 in some area.

    Marks of the picture itself are none: shapes that would be removed more often than specks have them. If e of
    independent events are expected, n or more have probability (e / n)^n e^(n - e) at most (Chernoff).
    """
    if not rate:
        return np.zeros(len(pieces))
    dirt = probability_of(odds + np.log(rate))
    there = np.bincount(pieces.kind, dirt)[pieces.kind]
    expected = rate * area * np.exp(log_share(pieces.sizes))
    nats = there * np.log(np.maximum(there / expected, 1)) - there + expected
    return np.where((there > expected) & (nats > REPEATED), 0.0, dirt)


def likeliest_rate(pieces: Pieces, odds: np.ndarray, area: int) -> tuple[float, float]:
    """The rate at which pieces are likeliest, without marks, and their lead over a rate of 0 in nats."""
    rate, dirt = len(pieces) / area, np.zeros(len(pieces))
    for _ in range(RATE_STEPS):
        if rate * area < RATE_TOLERANCE:
            return 0.0, 0.0
        dirt = probabilities(pieces, odds, rate, area)
        before, rate = rate, float(dirt.sum() / area)
        if abs(rate - before) <= RATE_TOLERANCE * before:
            break
    return rate, float(np.logaddexp(0, odds[dirt > 0] + np.log(rate)).sum() - rate * area)
