"""Whether a prior explains an image better than independent pixels do; where not, it has nothing to restore it by.

log p(image | prior), the evidence minus log Z of the prior, is compared with log p(image | independent pixels) under
the same damage, the parameters of these being those that suit the very image best. They know of no structure: a page of
text, noise, or a digit in inverted colours is foreign to a prior that explains it less well than they do.

Had the prior drawn the image itself, with the damage that is told, a fixed rival would be `ODDS` times as probable once
in `ODDS` times at most (Markov's inequality). A rival fitted to n pixels gains half of log n for each number fitted
(Schwarz, 1978), which is added, and so is what solvers may be off. But real images are no draws of a prior, and nobody
knows all of their damage: a wrong p, dust, a pixel far off the narrow band that a grey prior expects. So an image
that is explained under noise of `FORGIVEN` is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.gaussian_noise import SHARPEST
from restore.inference.damage import Damage, number
from restore.marginals import Marginals, Status
from restore.registry import SOLVERS, UNITS
from restore.zoo.description import Description

ODDS = 1e4

# Nats by which solvers may be off: where the evidence is weak, of an image more than of the prior alone.
OFF = 10.0

# Probability of flips, or standard deviation of Gaussian noise, by which images may be off that are told to have less.
FORGIVEN = 0.1

# Noise that was cut off at black and white has another mean than noise: off by sigma / sqrt(2 pi) where half of it was,
# which costs 1 / (4 pi) nats a pixel of a prior that knows the ground, and two pixels for each that shows the end.
CUT_OFF = 1 / (2 * np.pi)

# Halvings of the interval that the share of white lies in.
HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Observed:
    """Damaged images (N, H, W), and what is known of the damage."""

    grey: np.ndarray
    damage: Damage

    def rows(self, rows: np.ndarray) -> Observed:
        """Some of the images."""
        return Observed(self.grey[rows], self.damage.rows(rows))

    def forgiven(self, about: Description) -> Observed:
        """The same, with noise of at least `FORGIVEN`."""
        return replace(self, damage=self.damage.with_at_least(FORGIVEN, about))

    @property
    def p(self) -> np.ndarray:
        """For every pixel, one rate for white and black."""
        return self._spread(number(self.damage.p))

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Of white and of black pixels, for every pixel."""
        white, black = self.damage.rates
        return self._spread(white), self._spread(black)

    @property
    def sigma(self) -> np.ndarray:
        """For every pixel."""
        return self._spread(number(self.damage.sigma))

    @property
    def certain(self) -> np.ndarray:
        """Of which images every pixel is known, as it is or inverted, (N,)."""
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
        solve: restores images with their evidence.
        seen: the images.
        found: what `solve` made of them.
        tried: the damage at every level among which one was chosen; none where levels were told. Independent pixels
            have their own best of them.

    Returns:
        Shape (N,); 0 where the prior explains an image as well, by a margin of doubt, or where nothing is known: the
        prior is conditional, or a solver did not converge; and where pixels are certain, so that none is a guess.
    """
    nothing = np.zeros(len(seen.grey))
    if not SOLVERS[about.inference.solver].evidence or about.conditional or seen.certain.all():
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
        # Where the solver converges no more, the first verdict stands.
        leads[doubted] = np.fmin(leads[doubted], lead(again, solve(again)))
    return np.where(leads > most, leads, nothing)


def unexplained(model: str, nats: float) -> str:
    """The sentence for an image that independent pixels explain better than a prior does."""
    return (
        f"{model} explains it less well than independent pixels do (by {nats:.0f} nats), so its answer would be a guess"
    )


def objection(about: Description, nats: float, *, inverted: bool, invert: bool, chosen: bool) -> str:
    """The same, with what to do.

    Args:
        about: the prior's description.
        nats: the shortfall.
        inverted: whether the image looks inverted.
        invert: whether it was inverted for the prior.
        chosen: whether the level of noise was, and not told.
    """
    noisier = "" if chosen else f", or if it is noisier than told give --{'sigma' if about.grey else 'p'} auto"
    other = "try it without --invert" if invert else "try --invert"
    remedy = f"it looks inverted: {other}" if inverted else f"train a prior on images like it{noisier}"
    return f"{unexplained(about.name, nats)}; {remedy}; --force restores it all the same"


def _margin(about: Description, seen: Observed) -> np.ndarray:
    """Nats that independent pixels have to lead by, (N,)."""
    fitted = 1 + about.grey + _spiked(about)
    cut_off = (seen.sigma > 0) & ((seen.grey <= 0) | (seen.grey >= 1)) & seen.visible
    count = seen.visible.sum((1, 2))
    return np.log(ODDS) + OFF + fitted * np.log(np.maximum(count, 1)) / 2 + CUT_OFF * cut_off.sum((1, 2))


def independent(about: Description, seen: Observed) -> np.ndarray:
    """log p of images under independent pixels, all of one distribution that makes it largest; (N,), in nats.

    Binary pixels are white with one probability. Grey ones are normal with one mean and variance, and where pixels of
    the prior may be exactly black, and come through exactly, some of them are that.
    """
    return (_grey if about.grey else _ink)(about, seen)


def _best_independent(about: Description, seen: Observed, tried: Sequence[Damage]) -> np.ndarray:
    """The same at the best of the levels that were tried."""
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
        # Of a pixel known to be exactly black there is a mass and not a density, unless p says so.
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
    """The largest sum over visible pixels of log(m one + (1 - m) other), m in [0, 1], which is concave in m; (N,)."""
    low, high = np.zeros((len(one), 1, 1)), np.ones((len(one), 1, 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slopes = np.where(visible, (one - other) / (middle * one + (1 - middle) * other), 0)
        rising = slopes.sum((1, 2), keepdims=True) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    middle = (low + high) / 2
    return np.where(visible, np.log(np.where(visible, middle * one + (1 - middle) * other, 1)), 0).sum((1, 2))
