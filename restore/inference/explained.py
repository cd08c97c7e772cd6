"""Test whether a prior explains an image better than independent pixels do. If not, it cannot restore that image.

log p(image | prior), the evidence minus log Z of the prior, is compared with log p(image | independent pixels) under
the same damage. The parameters of the independent pixels are those that suit this image best. They know no structure: a
page of text, noise, or a digit in inverted colours is foreign to a prior that explains it less well than they do.

If the prior itself had drawn the image and its damage, a fixed rival would be `ODDS` times as probable in at most one
of `ODDS` cases (Markov's inequality). A rival fitted to n pixels gains half of log n for each number fitted (Schwarz,
1978); this and the error of solvers are allowed for. But real images are not drawn from a prior, and nobody knows all
of their damage: a wrong p, dust, a pixel far outside the narrow band that a grey prior expects. So an image passes,
too, if it is explained under noise of `FORGIVEN`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.gaussian_noise import SHARPEST
from restore.inference.damage import Damage, number
from restore.marginals import Marginals, Status
from restore.registry import UNITS
from restore.zoo.description import Description

ODDS = 1e4

# What messages call the rival.
INDEPENDENT = "independent pixels"

# Nats by which solvers may be off: where the evidence is weak, they err more about an image than about the prior alone.
OFF, OFF_PIXELS = 10.0, 28 * 28

# Nats for each further pixel. In benchmarks/explained.py pages of text were up to .0124 behind under the prior of text;
# under a prior of digits they were .0174 behind, and pages of other marks .0043.
OFF_BEYOND = 0.02

# Flip probability, or standard deviation of Gaussian noise, that an image may have beyond what the caller gave.
FORGIVEN = 0.1

# Clipping at black and white shifts the mean of noise, by sigma / sqrt(2 pi) where half of it was clipped. That costs
# 1 / (4 pi) nats a pixel under a prior that knows the ground; two pixels are allowed for each at black or white.
CUT_OFF = 1 / (2 * np.pi)

# Bisections of the interval that holds the share of white.
HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Observed:
    """Damaged images (N, H, W), and what is known of the damage."""

    grey: np.ndarray
    damage: Damage

    def rows(self, rows: np.ndarray) -> Observed:
        return Observed(self.grey[rows], self.damage.rows(rows))

    def forgiven(self, about: Description) -> Observed:
        """The same images, with noise of at least `FORGIVEN`."""
        return replace(self, damage=self.damage.with_at_least(FORGIVEN, about))

    @property
    def p(self) -> np.ndarray:
        """One rate for white and black, for every pixel."""
        return self._spread(number(self.damage.p))

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates of white and of black pixels, for every pixel."""
        white, black = self.damage.rates
        return self._spread(white), self._spread(black)

    @property
    def sigma(self) -> np.ndarray:
        return self._spread(number(self.damage.sigma))

    @property
    def certain(self) -> np.ndarray:
        """Which images have every pixel known, as it is or inverted; (N,)."""
        told = np.logical_and(*(np.isin(rate, (0, 1)) for rate in self.rates)) & (self.sigma == 0)
        return (told & self.visible).all((1, 2))

    @property
    def visible(self) -> np.ndarray:
        hidden = self.damage.hidden
        return np.ones(self.grey.shape, bool) if hidden is None else ~np.asarray(hidden)

    def _spread(self, level: float | np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray(level, np.float64), self.grey.shape)


def shortfall(
    about: Description,
    log_z: Callable[[], float],
    solve: Callable[[Observed], Marginals],
    seen: Observed,
    found: Marginals,
    tried: Sequence[Damage],
) -> np.ndarray:
    """By how many nats independent pixels explain images better than a prior does.

    Args:
        about: the prior's description.
        log_z: finds log Z of the prior alone, NaN if it is not known.
        solve: restores images and gives their evidence.
        seen: the images.
        found: what `solve` made of them.
        tried: the damage at every level tried, if one was chosen; empty if the levels were given. Independent pixels
            choose their own best.

    Returns:
        Shape (N,). 0 where the prior explains an image as well within a margin of doubt; where nothing is known (its
        evidence cannot be compared, or the solver did not converge); and where pixels are certain, so that none is a
        guess.
    """
    nothing = np.zeros(len(seen.grey))
    if not about.comparable or seen.certain.all():
        return nothing
    alone = log_z()

    def lead(images: Observed, solved: Marginals) -> np.ndarray:
        rival = independent(about, images) if not tried else _best_independent(about, images, tried)
        assert solved.evidence is not None  # the prior is not conditional
        ahead = rival - (solved.evidence - alone)
        return np.where((solved.status == Status.CONVERGED) & np.isfinite(ahead), ahead, np.nan)

    most = np.where(seen.certain, np.inf, _margin(about, seen))
    leads = np.nan_to_num(lead(seen, found))
    doubted = np.flatnonzero(leads > most)
    if not tried and doubted.size:
        again = seen.rows(doubted).forgiven(about)
        # Where the solver does not converge again, the first verdict stands.
        leads[doubted] = np.fmin(leads[doubted], lead(again, solve(again)))
    return np.where(leads > most, leads, nothing)


def unexplained(model: str, rival: str = "a simpler one") -> str:
    """The sentence for an image that a rival explains as well as a prior does, or better."""
    return f"{model} explains it no better than {rival}, so its answer would be a guess"


def wanting(about: Description, evidence: float, seen: Observed, tried: Sequence[Damage]) -> float:
    """How many nats the best of several priors lacks to be `ODDS` times as probable as independent pixels; or 0.

    At a level of noise that is not told, noise itself, or a blank page, is as probable under any prior as under them.

    Args:
        about: the best prior's description.
        evidence: log p(image | prior) at its best level, in nats.
        seen: the image.
        tried: the damage at the levels of which each takes its best.
    """
    return max(0.0, float(_best_independent(about, seen, tried)[0] + np.log(ODDS) - evidence))


def objection(about: Description, rival: str, *, inverted: bool, invert: bool, chosen: bool, compared: bool) -> str:
    """The sentence of `unexplained`, with what to do.

    Args:
        about: the prior's description.
        rival: what explains it as well.
        inverted: whether the image looks inverted.
        invert: whether it was inverted for the prior.
        chosen: whether the level of noise was chosen, not given.
        compared: whether this is the best of several priors.
    """
    if compared and chosen:
        return (
            f"no prior explains it better than {INDEPENDENT}: it is all noise, or blank, or unlike what they know; "
            "give --p if you know the level of noise, train one on images like it with `restore train`, or restore it "
            "all the same with --force"
        )
    other = "leave --invert out" if invert else "try --invert"
    noisier = f", or give --{'sigma' if about.grey else 'p'} auto if it may be noisier than told"
    named = "train one on images like it with `restore train`" if compared else "leave --model out"
    remedy = f"it looks inverted: {other}" if inverted else named + (noisier if not chosen else "")
    forced = ", or restore it all the same with --force" if chosen or inverted else ""
    return f"{unexplained(about.name, rival)}; {remedy}{forced}"


def _margin(about: Description, seen: Observed) -> np.ndarray:
    """The lead, in nats, that independent pixels need; (N,)."""
    fitted = 1 + about.grey + _spiked(about)
    cut_off = (seen.sigma > 0) & ((seen.grey <= 0) | (seen.grey >= 1)) & seen.visible
    count = seen.visible.sum((1, 2))
    return (
        np.log(ODDS)
        + OFF
        + OFF_BEYOND * np.maximum(0, count - OFF_PIXELS)
        + fitted * np.log(np.maximum(count, 1)) / 2
        + CUT_OFF * cut_off.sum((1, 2))
    )


def independent(about: Description, seen: Observed) -> np.ndarray:
    """log p of images under independent pixels that share one distribution, fitted to each image; (N,), in nats.

    Binary pixels share one probability of white. Grey pixels share one mean and variance of a normal; if the prior's
    pixels can be exactly black, and are seen exactly, some of them are.
    """
    return (_grey if about.grey else _ink)(about, seen)


def _best_independent(about: Description, seen: Observed, tried: Sequence[Damage]) -> np.ndarray:
    """`independent` at the best of the levels tried."""
    return np.max([independent(about, replace(seen, damage=damage)) for damage in tried], axis=0)


def _ink(about: Description, seen: Observed) -> np.ndarray:
    (of_white, of_black), white = seen.rates, about.as_known(seen.grey) > 0
    return _mixed(np.where(white, 1 - of_white, of_white), np.where(white, of_black, 1 - of_black), seen.visible)


def _grey(about: Description, seen: Observed) -> np.ndarray:
    p, told, grey = seen.p, seen.sigma, seen.grey
    width = np.maximum(told, SHARPEST)
    dark = (grey == 0) & (told == 0) & _spiked(about)
    impulse = ((grey == 0) | (grey == 1)) & (p > 0) & ~dark
    through = seen.visible & ~impulse & ~dark
    count = through.sum((1, 2), keepdims=True).clip(1)
    mean = np.where(through, grey, 0).sum((1, 2), keepdims=True) / count
    variance = np.where(through, (grey - mean) ** 2, 0).sum((1, 2), keepdims=True) / count
    with np.errstate(divide="ignore"):
        log_grey = np.log1p(-p) + _log_normal(grey - mean, np.maximum(np.sqrt(variance), width))
        log_grey = np.where(dark, np.log(p / 2), np.where(impulse, np.log(p / 2), log_grey))
        # A pixel known to be exactly black has a mass and not a density, unless p says otherwise.
        black = np.where(p > 0, np.log1p(-p / 2), _log_normal(np.zeros(()), width))
        atom = np.where(dark, black, np.log1p(-p) + _log_normal(grey, width))
    log_black = np.where(_spiked(about) & (told == 0) & ~impulse, atom, log_grey)
    top = np.maximum(log_grey, log_black)
    fitted = _mixed(np.exp(log_grey - top), np.exp(log_black - top), seen.visible)
    return fitted + np.where(seen.visible, top, 0).sum((1, 2))


def _spiked(about: Description) -> bool:
    """Whether pixels may be exactly black, with a probability and not a density."""
    return UNITS[about.visible].atom


def _log_normal(off: np.ndarray, width: np.ndarray) -> np.ndarray:
    return -((off / width) ** 2) / 2 - np.log(width * np.sqrt(2 * np.pi))


def _mixed(one: np.ndarray, other: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """The maximum over m in [0, 1] of the sum over visible pixels of log(m one + (1 - m) other), concave in m; (N,)."""
    low, high = np.zeros((len(one), 1, 1)), np.ones((len(one), 1, 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slopes = np.where(visible, (one - other) / (middle * one + (1 - middle) * other), 0)
        rising = slopes.sum((1, 2), keepdims=True) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    middle = (low + high) / 2
    return np.where(visible, np.log(np.where(visible, middle * one + (1 - middle) * other, 1)), 0).sum((1, 2))
