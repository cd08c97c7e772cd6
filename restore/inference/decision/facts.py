"""The numbers by which it is decided whether a picture is restored or comes back as it was."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from math import isnan, nan
from typing import Any

import numpy as np

# Distance, in pixels, up to which pairs of changed pixels are counted.
PAIR_REACH = 8

# Pairs of changed pixels may exceed those of independent changes by this factor, and by this share of all pixels
# (`benchmarks/choices/no_harm.py`, seeds 0, 1, 2 and 4).
PAIRED, MORE = 1.5, 0.003

# The lead that a prior needs over independent pixels: bits per pixel without noise, at least, and bits in all. Flips of
# probability p leave (1 - 2p)^4 of what pairs of pixels tell of each other (`benchmarks/choices/recognised.py
# --tuning`). Among many candidates one is ahead by chance (`benchmarks/choices/no_harm.py --seed 11 --only grain`).
MARGIN_PER_PIXEL, LEAST_MARGIN, MARGIN_IN_ALL = 0.025, 0.005, 4.5


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was measured of a picture and of its answer; NaN where it was not.

    Attributes:
        classes: 1 if the few colours of the picture name classes.
        page: the share of a grey picture that is ink on paper.
        contrast: how much darker ink is than its paper, as a share of the paper's level.
        two_tones: of a drawing, the share of the variance of grey levels that two levels explain.
        explained: of a page, the share of the variance of grey levels near ink that two local levels explain.
        left: of a page, the standard deviation of the rest, as a share of the contrast.
        grain: of a page, the standard deviation of white noise, as a share of the contrast.
        crowded: of a page, the share of ink within reach of ink.
        lead: the score ahead of independent pixels, as a multiple of what is needed.
        field: the score ahead of an Ising field, in nats.
        level: the probability of flips that was found.
        stays: the share of the wrong pixels that the posterior expects to stay wrong.
        pairs: pairs of changed pixels beyond those of independent changes, as a multiple of what chance makes.
        flips: the share of visible pixels that would change.
    """

    classes: float = nan
    page: float = nan
    contrast: float = nan
    two_tones: float = nan
    explained: float = nan
    left: float = nan
    grain: float = nan
    crowded: float = nan
    lead: float = nan
    field: float = nan
    level: float = nan
    stays: float = nan
    pairs: float = nan
    flips: float = nan

    def __or__(self, other: Facts) -> Facts:
        """These facts, and those that were measured since.

        >>> (Facts(lead=1.0) | Facts(stays=0.2)).measured
        {'lead': 1.0, 'stays': 0.2}
        """
        return replace(self, **other.measured)

    @property
    def measured(self) -> dict[str, float]:
        """The facts that were measured, by name."""
        values = {fact.name: getattr(self, fact.name) for fact in fields(Facts)}
        return {name: float(value) for name, value in values.items() if not isnan(value)}


def lead_of(ahead: float, p: Any, pixels: int, *, harmless: bool) -> float:
    """The lead over independent pixels, in bits per pixel, as a multiple of what is needed.

    Args:
        ahead: the lead.
        p: the probability of flips, a number or one for each pixel.
        pixels: how many were predicted.
        harmless: True if only hidden pixels are to change, so that any lead will do that is not chance.
    """
    clarity = float(np.mean(1 - 2 * np.asarray(p))) ** 4
    needed = 0.0 if harmless else max(MARGIN_PER_PIXEL * clarity, LEAST_MARGIN)
    return ahead / max(needed, MARGIN_IN_ALL / max(pixels, 1))


def stays_of(means: np.ndarray, p: Any, visible: np.ndarray) -> float:
    """The share of the wrong visible pixels that a posterior expects to stay wrong: mean min(m, 1 - m) by mean p."""
    now = np.broadcast_to(p, means.shape)[visible].mean()
    expected = np.minimum(means, 1 - means)[visible].mean()
    return float(expected / now) if now else np.inf


def pairs_of(changed: np.ndarray, white: np.ndarray, visible: np.ndarray) -> float:
    """How often changed pixels are together beyond independent ones, as a multiple of what chance alone makes.

    Fine lines, dots and grids of a picture are beside each other, or in steps. What goes beyond the pairs that may be,
    in standard errors and squared, is summed over the displacements: half of these is what chance alone makes.

    Args:
        changed, white, visible: boolean (H, W): the pixels that changed; the restored picture, whose two colours may
            have changed at different rates; and the pixels that count.

    >>> flips = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> lines = np.arange(200)[:, None] % 10 == np.zeros(200)
    >>> every = np.ones((200, 200), bool)
    >>> [pairs_of(changed, every, every) <= 1 for changed in (flips, lines)]
    [True, False]
    """
    colours = visible & white, visible & ~white
    rates = [float(changed[colour].mean()) if colour.any() else 0.0 for colour in colours]
    alike = [_pairs(colour) for colour in colours]
    mixed = _pairs(visible) - sum(alike)
    pairs = _pairs(changed)
    light, dark = rates
    expected = light**2 * alike[0] + dark**2 * alike[1] + light * dark * mixed
    allowed = np.minimum(PAIRED * expected, expected + MORE * visible.sum())
    beyond = (pairs - allowed).clip(0) ** 2 / (1 + expected)
    return float(beyond.sum() / (beyond.size / 2))


def _pairs(of: np.ndarray) -> np.ndarray:
    """How many pairs of pixels of a set (H, W) there are at every displacement up to `PAIR_REACH`, and its opposite."""
    sums = list[int]()
    for down in range(PAIR_REACH + 1):
        for across in range(-PAIR_REACH if down else 1, PAIR_REACH + 1):
            rows, columns = (_overlap(size, by) for size, by in zip(of.shape, (down, across), strict=True))
            both = of[rows[0], columns[0]] & of[rows[1], columns[1]]
            sums.append(int(np.count_nonzero(both)))
    return np.array(sums)


@cache
def _overlap(size: int, by: int) -> tuple[slice, slice]:
    """The part of an axis that is there after a displacement, too; and where it then is."""
    before = slice(max(0, -by), max(0, size - max(0, by)))
    return before, slice(max(0, by), max(0, size + min(0, by)))
