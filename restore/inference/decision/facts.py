"""The numbers by which it is decided whether a picture is restored or comes back as it was.

A *prior* is a model of one kind of picture. *Flips* are pixels of the wrong colour; their *level* is how probable they
are. *Independent pixels* are the model in which no pixel tells anything of another.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isnan, nan
from typing import Any

import numpy as np

# Distance, in pixels, up to which pairs of changed pixels are counted: dots of leaders are some ten apart, and what is
# harmed differs more from what is helped than with half of it (`benchmarks/choices/rules.py`).
PAIR_REACH = 16

# What is up to so many standard errors beyond its expectation may be chance.
CHANCE = 3.0

# The lead that a prior needs over independent pixels, in bits per pixel without noise. Flips of probability p leave
# (1 - 2p)^4 of what pairs of pixels tell of each other (`benchmarks/choices/recognised.py --tuning`).
MARGIN_PER_PIXEL = 0.025

# And the lead that it needs in all, in bits. By chance one leads by n bits or more in at most one of 2^n pictures; of
# some 200 priors and levels one does by 18 in one of 1,300 (`benchmarks/choices/no_harm.py --only grain`).
MARGIN_IN_ALL = 18.0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was measured of a picture and of its answer; NaN where it was not.

    Attributes:
        classes: 1 if the few colours of the picture are labels, as in a map of classes.
        page: the share of a grey picture that is ink on paper, as a prior tells that sees a quarter of its size, and in
            no other colour.
        false_ink: of what was read as the ink of a page, the share that is expected to be paper; 1 if there is no ink.
        two_tones: of a drawing, the share of the variance of grey levels that two levels explain.
        left: of what was read as a page, what two levels, ink and paper, do not explain: its standard deviation, as a
            share of their contrast, times `crowded`, divided by the share of the variance near ink that they explain.
        grain: of a page, the standard deviation of white noise, as a share of the contrast.
        crowded: of a page, how many of the pixels near ink are ink themselves, as a share.
        lead: how much better an equal mixture of the prior and of independent pixels predicts than these alone, as a
            multiple of what is needed.
        level: the probability of flips that was found.
        disagreement: the share of visible pixels that would change, less the level, either way.
        pairs: how much more often changed pixels lie at certain distances from each other than independent ones do,
            per changed pixel; of a large picture, of its worst part.
        changed: the share of visible pixels, which are not hidden by a mask, that would change.
    """

    classes: float = nan
    page: float = nan
    false_ink: float = nan
    two_tones: float = nan
    left: float = nan
    grain: float = nan
    crowded: float = nan
    lead: float = nan
    level: float = nan
    disagreement: float = nan
    pairs: float = nan
    changed: float = nan

    def __or__(self, other: Facts) -> Facts:
        """These facts, and those that were measured since.

        >>> (Facts(lead=1.0) | Facts(changed=0.1)).measured
        {'lead': 1.0, 'changed': 0.1}
        """
        return replace(self, **other.measured)

    @property
    def measured(self) -> dict[str, float]:
        """The facts that were measured, by name."""
        values = {fact.name: getattr(self, fact.name) for fact in fields(Facts)}
        return {name: float(value) for name, value in values.items() if not isnan(value)}


def lead_of(ahead: float, p: Any, pixels: int, *, harmless: bool) -> float:
    """The lead over independent pixels, as a multiple of what is needed.

    Args:
        ahead: the lead, in bits per pixel, of a mixture with them (`restore.inference.score.Prediction.ahead`).
        p: the probability of flips, a number or one for each pixel.
        pixels: how many were predicted.
        harmless: True if only hidden pixels are to change, so that any lead is enough that is too large for chance.
    """
    clarity = float(np.mean(1 - 2 * np.asarray(p))) ** 4
    needed = 0.0 if harmless else MARGIN_PER_PIXEL * clarity
    return ahead / max(needed, MARGIN_IN_ALL / max(pixels, 1))


def pairs_of(changed: np.ndarray, white: np.ndarray, visible: np.ndarray) -> float:
    """How much more often changed pixels have others at certain displacements than by chance, per changed pixel.

    Independent changes have no pattern; what a picture had of fine lines, dots and grids is beside each other, or in
    steps. It is the root of the sum over displacements of (pairs - expected)^2, less what independent changes, whose
    pairs vary as Poisson's law says, make of this sum: its expectation, and `CHANCE` standard errors and those of one
    pair.

    Args:
        changed, white, visible: boolean (H, W): the pixels that changed; the restored picture, whose two colours may
            have changed at different rates; and the pixels that count.

    >>> flips = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> lines = np.arange(200)[:, None] % 10 == np.zeros(200)
    >>> every = np.ones((200, 200), bool)
    >>> [round(pairs_of(changed, every, every), 1) for changed in (flips, lines)]
    [0.0, 6.2]
    """
    rates = np.zeros(visible.shape)
    for colour in (visible & white, visible & ~white):
        rates[colour] = changed[colour].mean() if colour.any() else 0.0
    expected = _pairs(rates)
    squares = ((_pairs(changed) - expected) ** 2 - expected).sum()
    by_chance = CHANCE * np.sqrt(1 + (2 * expected**2 + expected).sum())
    return float(np.sqrt(max(0.0, squares - by_chance)) / max(np.count_nonzero(changed), 1))


def _pairs(values: np.ndarray) -> np.ndarray:
    """Sums of products of pixels (H, W) with those at each displacement up to `PAIR_REACH`, one of two ways."""
    height, width = (-(-(size + PAIR_REACH) // 16) * 16 for size in values.shape)  # with room for no wrapping around
    power = np.abs(np.fft.rfft2(values, (height, width))) ** 2
    sums = np.fft.irfft2(power, (height, width))
    below = sums[1 : PAIR_REACH + 1]
    beside = sums[0, 1 : PAIR_REACH + 1]
    right = below[:, : PAIR_REACH + 1]
    left = below[:, -PAIR_REACH:]
    return np.concatenate([beside, right.ravel(), left.ravel()])
