"""Find at which rates white and black pixels flip, by predicting pixels that are held out.

From all other pixels a prior predicts each held-out pixel: white with probability c. What was seen there had no part in
that, so it shows white with probability c (1 - white) + (1 - c) black, and the best rates are those under which what
was seen is most probable (cross-validation, Stone 1974). Solvers are surer than they are right: c is the logistic
function of a + b z, where z are the log-odds that a solver finds, and a and b are fitted with the rates (Platt, 1999).

Neither the evidence nor EM will do: what a solver overlooks it takes for ground, so both find that strokes fade half as
often as they do, and the level at strong noise too low.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from restore.channels.values import probability_of

# Fewer pixels, such as those of one digit, tell rates apart too rarely for what it costs to predict them.
ENOUGH = 2000

# Two rates are taken where they are so many times as probable as one.
ODDS = 1e4

# Rates that are no lower, as few pixels say nothing of lower ones; what two of them may come to together; and either
# of them: one that is higher shows a prior to which the colour is unknown, not pixels that flip.
LEAST, MOST, HIGHEST = 1e-3, 0.95, 0.4

# Log-odds beyond which a prediction says nothing more, and into how many bins they are counted.
SURE, BINS = 9.0, 72

# Standard deviations of a around 0 and of b around 1 where nothing is seen: a blank page says nothing of them.
DOUBT = np.array([2.0, 0.5])

# So much of a rate is certain where two are found; and how rarely as few pixels may be flipped by chance.
CERTAIN, BY_CHANCE = 0.75, 0.01

# Where a pixel has the colour that surrounds it: between four neighbours, or three pixels on either side.
REACH = 3
SURROUNDED = (
    [(0, 1), (0, -1), (1, 0), (-1, 0)],
    [(0, right) for right in (-3, -2, -1, 1, 2, 3)],
    [(down, 0) for down in (-3, -2, -1, 1, 2, 3)],
)

# Steps of scoring, the first of them damped so much, and the longest.
STEPS, DAMPING, LONGEST = 40, 1e-2, 2.0

# Predicts pixels: from rates of white and of black (N, 2), the log-odds that each held-out pixel is white, (N, D).
Predict = Callable[[np.ndarray], np.ndarray]


def rates_of(seen: np.ndarray, visible: np.ndarray, levels: np.ndarray, predict: Predict) -> np.ndarray:
    """The rates of white and of black pixels of images, (N, 2).

    Both are the level given, unless another one is more probable for both, or two rates are by far.

    Args:
        seen: the images, boolean (N, D): where they look white.
        visible: the pixels that count, boolean (N, D).
        levels: a rate for both colours, (N,).
        predict: is asked once at the levels, and again where two rates were found.
    """
    given = np.repeat(levels.clip(LEAST, MOST / 2)[:, None], 2, 1)
    found = _chosen(counted(seen, visible, predict(given)), given)
    if (found[:, 0] != found[:, 1]).any():
        again = _chosen(counted(seen, visible, predict(found)), given)
        found = np.where(found[:, :1] != found[:, 1:], again, found)
    return np.where(found == given, levels[:, None], found)


def _chosen(counts: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The given rates (N, 2), one for both colours, or two: the simplest that is not clearly worse."""
    none, one, two = (fitted(counts, given, free) for free in range(3))
    # One number fitted to n pixels gains so much by itself (Schwarz, 1978).
    by_itself = np.log(counts[:, :2].sum((1, 2)).clip(1)) / 2
    moved = (one.log_p - none.log_p > by_itself)[:, None]
    best, log_p = np.where(moved, one.rates, given), np.where(moved[:, 0], one.log_p, none.log_p)
    differ = (two.log_p - log_p > np.log(ODDS)) & (two.rates.sum(1) < MOST) & (two.rates.max(1) < HIGHEST)
    return np.where(differ[:, None], two.rates, best)


def possible(rates: np.ndarray, white: np.ndarray, seen: np.ndarray) -> bool:
    """Whether an image shows as many lone pixels as flips at the higher of two rates would leave.

    A pixel that is surrounded by one colour has this colour but for flips, or because it was drawn so. Thin strokes
    that a prior takes for faded ink leave no such holes.

    Args:
        rates: of white and of black pixels, (2,).
        white: where the image looks white, boolean (H, W).
        seen: the pixels that count, boolean (H, W).

    >>> stripes = np.arange(60)[:, None] % 6 < np.full(60, 3)
    >>> everywhere, faded = np.ones(stripes.shape, bool), np.random.default_rng(0).random(stripes.shape) < 0.2
    >>> [possible(np.array([0.001, 0.2]), each, everywhere) for each in (stripes, stripes | faded)]
    [False, True]
    """
    looks = ~white if rates[1] > rates[0] else white
    height, width = looks.shape
    same = np.pad(looks & seen, REACH)
    for places in SURROUNDED:
        around = seen.copy()
        for down, right in places:
            around &= same[REACH + down :, REACH + right :][:height, :width]
        if _at_most(int((around & ~looks).sum()), int(around.sum()), CERTAIN * float(rates.max())) < BY_CHANCE:
            return False
    return True


def _at_most(flipped: int, count: int, rate: float) -> float:
    """No less than the probability that so few of so many pixels are flipped (Chernoff, 1952).

    >>> round(_at_most(0, 10, 0.5) * 2**10, 9), _at_most(6, 10, 0.5)  # the first is exact
    (1.0, 1.0)
    """
    share = flipped / max(count, 1)
    if share >= rate or not count:
        return 1.0
    kept = (1 - share) * math.log((1 - share) / (1 - rate))
    return math.exp(-count * (kept + (share * math.log(share / rate) if share else 0.0)))


def counted(seen: np.ndarray, visible: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
    """Black and white pixels by the log-odds predicted for them, and these: (N, 3, bins)."""
    odds = np.nan_to_num(log_odds.astype(np.float64)).clip(-SURE, SURE)
    bins = ((odds + SURE) * (BINS / (2 * SURE))).astype(int).clip(max=BINS - 1) + BINS * np.arange(len(seen))[:, None]

    def sums(weights: np.ndarray) -> np.ndarray:
        return np.bincount(bins.ravel(), weights.ravel(), BINS * len(seen)).reshape(-1, BINS)

    black, white = sums(visible & ~seen), sums(visible & seen)
    return np.stack([black, white, sums(visible * odds) / np.maximum(black + white, 1)], 1)


class Fitted(NamedTuple):
    """Rates of white and of black pixels, (N, 2), and log p of what was seen under them, in nats, (N,)."""

    rates: np.ndarray
    log_p: np.ndarray


def fitted(counts: np.ndarray, start: np.ndarray, free: int) -> Fitted:
    """The rates and the calibration under which pixels are most probable: Fisher's scoring with damped steps.

    Args:
        counts: see `counted`.
        start: the rates to begin with, (N, 2), equal.
        free: how many rates are fitted: 0 to keep those, 1 for one that both colours share, or 2.
    """
    # What moves the log-odds of the two rates, a and b.
    design = np.concatenate([(np.zeros((0, 4)), np.ones((1, 4)) * [1, 1, 0, 0], np.eye(4)[:2])[free], np.eye(4)[2:]])
    first = np.concatenate([np.log(start / (1 - start)), np.broadcast_to([0.0, 1.0], start.shape)], 1)
    low = np.array([np.log(LEAST / (1 - LEAST))] * 2 + [-6.0, 0.1])
    high = np.array([0.0, 0.0, 6.0, 4.0])
    at, damping = first, np.full((len(first), 1, 1), DAMPING)
    now, gain, known = _scored(counts, at)
    for _ in range(STEPS):
        slopes, curved = gain @ design.T, design @ known @ design.T
        step = np.linalg.solve(curved + damping * curved * np.eye(len(design)), slopes[..., None])[..., 0]
        tried = (at + step.clip(-LONGEST, LONGEST) @ design).clip(low, high)
        then, *rest = _scored(counts, tried)
        better = (then >= now)[:, None]
        at, gain = np.where(better, tried, at), np.where(better, rest[0], gain)
        now, known = np.where(better[:, 0], then, now), np.where(better[..., None], rest[1], known)
        damping = np.where(better[..., None], damping / 4, damping * 8).clip(1e-6, 1e6)
    return Fitted(probability_of(at[:, :2]), now)


def _scored(counts: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log p of what was seen and of the calibration, its slopes (N, 4), and Fisher's information (N, 4, 4)."""
    black, white, odds = counts.swapaxes(0, 1)
    rates, shift, slope = probability_of(at[:, :2]), at[:, 2:3], at[:, 3:]
    ink, keep = probability_of(shift + slope * odds), 1 - rates.sum(1, keepdims=True)
    p = (rates[:, 1:] + keep * ink).clip(1e-12, 1 - 1e-12)
    off = (at[:, 2:] - [0, 1]) / DOUBT
    log_p = (white * np.log(p) + black * np.log1p(-p)).sum(1) - (off**2).sum(1) / 2
    inner, turn = rates * (1 - rates), keep * ink * (1 - ink)
    moves = np.stack([-inner[:, :1] * ink, inner[:, 1:] * (1 - ink), turn, turn * odds], 1)
    gain = (moves * (white / p - black / (1 - p))[:, None]).sum(2)
    known = (moves * ((white + black) / (p * (1 - p)))[:, None]) @ moves.swapaxes(1, 2)
    gain[:, 2:] -= off / DOUBT
    # A rate of which nothing is seen stays where it is.
    return log_p, gain, known + np.diag([1e-9, 1e-9, *DOUBT**-2.0])
