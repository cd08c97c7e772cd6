"""Predict pixels that are held out, from all others: what was seen there had no part in the prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restore.channels.values import log_odds_of, probability_of
from restore.inference.damage import Rates
from restore.inference.noise.rates import rates_of
from restore.marginals import voided

if TYPE_CHECKING:
    from restore.inference.explained import Observed
    from restore.inference.pictures import PictureSolver

# Every pixel is held out once, each time with so large a share of the others.
FOLDS = 4

# Solvers are surer than they are right, by one of these factors (Platt, 1999), which a few thousand pixels tell.
SURER = (1.0, 1.4, 2.0, 2.8, 4.0)

# No prediction counts for less than that.
LEAST = 1e-4


def folds(shape: tuple[int, ...]) -> np.ndarray:
    """Which pixels are held out together: a number below `FOLDS` for each, by chance but always the same."""
    return np.random.default_rng(0).integers(0, FOLDS, shape)


def predicted(engine: PictureSolver, seen: Observed) -> np.ndarray:
    """The log-odds that each pixel of images (N, H, W) is white, as a prior predicts it from others, (N, D)."""
    fold = folds(seen.grey.shape[1:])
    out = fold == np.arange(FOLDS)[:, None, None]
    covered = (~seen.visible[:, None] | out).reshape(-1, *fold.shape)

    def repeated(level: np.ndarray) -> np.ndarray:
        return np.repeat(level, FOLDS, 0) if level.ndim == 3 else level

    found, _ = engine.marginals(np.repeat(seen.grey, FOLDS, 0), seen.damage.mapped(repeated).covering(covered))
    odds = np.nan_to_num(log_odds_of(voided(found).means[0])).reshape(len(seen.grey), FOLDS, -1)
    return np.take_along_axis(odds, fold.reshape(1, 1, -1), 1)[:, 0]


def rates_by_held_out(engine: PictureSolver, seen: Observed, levels: np.ndarray) -> np.ndarray:
    """The rates of white and of black pixels of images, (N, 2), as `rates_of` finds them from a level of each."""
    flat = (len(seen.grey), -1)

    def under(rates: np.ndarray) -> np.ndarray:
        return predicted(engine, replace(seen, damage=replace(seen.damage, p=Rates.each(rates))))

    white = engine.description.as_known(seen.grey) > 0
    return rates_of(white.reshape(flat), seen.visible.reshape(flat), levels, under)


def foretold(odds: np.ndarray, white: np.ndarray, rates: tuple[np.ndarray, np.ndarray]) -> float:
    """log p in nats of what was seen at some pixels, given log-odds of white that others predict for them.

    It takes no log Z, and so compares any priors (cross-validation, Stone 1974).

    Args:
        odds: log-odds, (D,).
        white: where white was seen, (D,).
        rates: at which white and black pixels flip, (D,) each.

    >>> sure, unsure = np.array([2.0, -2.0]), np.array([0.1, -0.1])
    >>> seen, rates = np.array([True, False]), (np.full(2, 0.1), np.full(2, 0.1))
    >>> foretold(sure, seen, rates) > foretold(unsure, seen, rates)
    True
    """
    ink = probability_of(np.nan_to_num(odds) / np.array(SURER)[:, None])
    return float(log_p_of_seen(ink, white, rates).sum(1).max())


def log_p_of_seen(
    ink: np.ndarray, white: np.ndarray, rates: tuple[float | np.ndarray, float | np.ndarray]
) -> np.ndarray:
    """log p in nats of what was seen at each pixel, white or black, that is white with probability `ink`.

    Args:
        ink: probabilities; those of `white` and of rates broadcast against them.
        white: where white was seen.
        rates: at which white and black pixels flip.
    """
    shown = (ink * (1 - rates[0]) + (1 - ink) * rates[1]).clip(LEAST, 1 - LEAST)
    return np.asarray(np.log(np.where(white, shown, 1 - shown)))


def foretold_by_share(white: np.ndarray, others: np.ndarray) -> float:
    """log p in nats of what was seen at some pixels, (D,), if they are white with the share of others that is, (E,).

    >>> round(foretold_by_share(np.array([True, False]), np.ones(9, bool)), 2)  # the odds of white are 19 to 1
    -3.05
    """
    share = (others.sum() + 0.5) / (others.size + 1)
    return float(np.log(np.where(white, share, 1 - share)).sum())
