"""Remove specks: small pieces of a picture that are likelier dirt than part of what the prior knows.

Every small piece of one colour is hidden, and the prior fills it from all around. A piece is dirt with the log-odds

    log rate - log-odds of the prior for its colour

by a Bayesian comparison: it comes from a speck, of which there are `rate` to a pixel, or from the picture. The pixels
of a piece go together, so the log-odds of the prior are averaged over them and count once. The rate is that at which
the pieces are likeliest, by expectation and maximisation; this needs no further filling. Specks that are joined to
strokes of their own colour are no pieces, and stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.specks import LARGEST, Specks, log_share
from restore.channels.values import log_odds_of, probability_of
from restore.inference.candidates import Prior

# Each pixel that has one above it, and that one; each that has one on its left, and that one.
BESIDE: tuple[tuple[Any, Any], ...] = ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1]))

# Pieces are hidden in so many turns: dots of a colon, or of a dotted line, mostly see each other.
TURNS = 2

# Pieces of one shape are marks, such as dots of a line or a halftone, if in a square of three times this side, in
# pixels, as many specks have it with at most the probability exp(-`REPEATED`).
NEAR, REPEATED = 12, 3.0

# Nats by which specks have to explain a picture better than none. With `conv-text` clean pages for training have 1 at
# most, with specks on .03 % 4, and on .1 % 14 at least (`benchmarks/choices/specks.py --tuning --pages 4 --seed 9100`).
SPECKS_MARGIN = 10.0

# The rate is final once a step changes it by a smaller part than this, or after this number of steps.
STILL, STEPS = 1e-4, 500


@dataclass(frozen=True, eq=False)
class Pieces:
    """The small pieces of a picture: joined pixels of one colour, at most as many as a speck has.

    Attributes:
        labels: the piece of each pixel, (H, W), from 0; -1 outside pieces.
        sizes: the number of pixels of each piece, (N,).
        alike: how many other pieces of the same shape and colour are near each, (N,).
    """

    labels: np.ndarray
    sizes: np.ndarray
    alike: np.ndarray

    @classmethod
    def of(cls, white: np.ndarray) -> Pieces:
        """The pieces of a picture, boolean (H, W)."""
        first = np.arange(white.size).reshape(white.shape)
        joined = [white[after] == white[before] for after, before in BESIDE]
        # In a piece no pixel is further from the first than this.
        for _ in range(LARGEST - 1):
            for (after, before), same in zip(BESIDE, joined, strict=True):
                for here, there in ((after, before), (before, after)):
                    np.minimum(first[here], first[there], out=first[here], where=same)
        small = np.bincount(first.ravel(), minlength=white.size) <= LARGEST
        for (after, before), same in zip(BESIDE, joined, strict=True):
            split = same & (first[after] != first[before])
            small[first[after][split]] = small[first[before][split]] = False
        inside = small[first]
        _, owner, sizes = np.unique(first[inside], return_inverse=True, return_counts=True)
        labels = np.full(white.shape, -1)
        labels[inside] = owner
        return cls(labels, sizes, _alike_near(np.argwhere(inside), owner, white[inside]))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean of values (H, W) over each piece, (N,)."""
        inside = self.labels >= 0
        return np.bincount(self.labels[inside], values[inside], len(self.sizes)) / self.sizes


def _alike_near(pixels: np.ndarray, owner: np.ndarray, white: np.ndarray) -> np.ndarray:
    """For each piece the number of others of its shape and colour in its cell of `NEAR` pixels and those around it."""
    count = int(owner.max(initial=-1)) + 1
    corners = np.full((count, 2), np.iinfo(int).max)
    np.minimum.at(corners, owner, pixels)
    bits = np.uint64(1) << ((pixels - corners[owner]) @ [LARGEST, 1]).astype(np.uint64)
    kinds = np.zeros((count, 2), np.uint64)
    np.bitwise_or.at(kinds[:, 0], owner, bits)
    kinds[owner, 1] = white
    _, kind = np.unique(kinds, axis=0, return_inverse=True)
    # Cells have a number in a frame of empty ones, so that those beside an edge are no others.
    rows, columns = (corners // NEAR + 1).T
    width = int(columns.max(initial=0)) + 2
    cell = (kind.ravel() * (int(rows.max(initial=0)) + 2) + rows) * width + columns
    cells, counts = np.unique(cell, return_counts=True)
    near = (cell[:, None] + np.add.outer([-width, 0, width], [-1, 0, 1]).ravel()) if count else np.zeros((0, 9), int)
    places = np.searchsorted(cells, near).clip(max=max(0, len(cells) - 1))
    return np.where(cells[places] == near, counts[places], 0).sum(1) - 1 if count else np.zeros(0, int)


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
    odds = log_odds(pieces, picture, prior)
    if specks is None:
        rate, nats = likeliest_rate(pieces, odds)
        rate = rate if nats > SPECKS_MARGIN else 0.0
    else:
        rate = specks.rate
    dirt = probabilities(pieces, odds, rate)
    inside = pieces.labels >= 0
    white = np.array(picture, np.float64)
    white[inside] = np.abs(white[inside] - dirt[pieces.labels[inside]])
    return Cleaned(white, Specks.of_rate(rate), int((dirt > 0.5).sum()))


def log_odds(pieces: Pieces, picture: np.ndarray, prior: Prior) -> np.ndarray:
    """The log-odds of the colour of each hidden piece under a prior, on average over its pixels, (N,)."""
    odds = np.zeros(picture.shape)
    for turn in range(TURNS if len(pieces.sizes) else 0):
        hidden = (pieces.labels >= 0) & (pieces.labels % TURNS == turn)
        filled = prior.posterior(Observed(picture.astype(np.float32), Damage(hidden=hidden)), lambda share: None)
        odds[hidden] = log_odds_of(filled.means[0][hidden].astype(np.float64))
    return pieces.mean(np.where(picture > 0.5, odds, -odds))


def probabilities(pieces: Pieces, odds: np.ndarray, rate: float) -> np.ndarray:
    """The probability that each piece is a speck, (N,), with this rate of specks.

    Marks of the picture itself are none: shapes that are near each other more often than specks have them. If e of
    independent events are expected, n or more have probability (e / n)^n e^(n - e) at most (Chernoff).
    """
    if not rate:
        return np.zeros(len(odds))
    expected = rate * (3 * NEAR) ** 2 * np.exp(log_share(pieces.sizes))
    more = np.maximum(pieces.alike, expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = np.where(more > expected, more * np.log(more / expected) - more + expected, 0.0)
    return np.where(nats > REPEATED, 0.0, probability_of(np.log(rate) - odds))


def likeliest_rate(pieces: Pieces, odds: np.ndarray) -> tuple[float, float]:
    """The rate at which pieces are likeliest, without marks, and their lead over a rate of 0 in nats."""
    area = pieces.labels.size
    rate, dirt = len(odds) / area, np.zeros(len(odds))
    for _ in range(STEPS):
        if rate * area < STILL:
            return 0.0, 0.0
        dirt = probabilities(pieces, odds, rate)
        before, rate = rate, float(dirt.sum() / area)
        if abs(rate - before) <= STILL * before:
            break
    return rate, float(np.logaddexp(0, np.log(rate) - odds[dirt > 0]).sum() - rate * area)
