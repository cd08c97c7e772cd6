"""The score: how well a prior predicts pixels that it has not seen; and the noise levels that follow from it.

Of a few crops a quarter of the pixels is hidden at a time, and the prior says how probably each of them is white, m.
What was observed there, y, had no part in that, so log p(y | m, level) compares any priors at any levels, without their
log Z (cross-validation, Stone, J. R. Statist. Soc. B 36, 1974). From the same predictions follow the levels: for flips
p(y = 1) = m (1 - p) + (1 - m) p, and of grey pixels y is normal with the predicted variance plus sigma squared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from restore.channels import BitFlip
from restore.channels.damage import Damage
from restore.channels.levels import Scale
from restore.channels.values import MOST_LOG_ODDS, log_odds_of, probability_of
from restore.inference.candidates import Candidate
from restore.inference.crops import Crops
from restore.inference.decision.facts import CHANCE
from restore.inference.restored import Level

# The number of bins of a tenth that count log-odds.
BINS = 2 * 10 * int(MOST_LOG_ODDS) + 1

# The factors by which the log-odds of solvers may be too large; with larger ones wrong predictions would count as noise
# (`benchmarks/choices/noise_level.py`).
SURER = (1.0, 1.4)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a candidate predicts of hidden pixels of a sample.

    Attributes:
        sample: the pictures.
        means, variances: of each pixel, (C, h, w).
        mask: the pixels that were predicted, boolean (C, h, w).
        diverged: True if the solver diverged everywhere.
    """

    sample: Crops
    means: np.ndarray
    variances: np.ndarray
    mask: np.ndarray
    diverged: bool = False

    @classmethod
    def of(
        cls, sample: Crops, candidate: Candidate, turns: Sequence[int], damage: Damage, crops: np.ndarray
    ) -> Prediction:
        """Predict the pixels that some turns hide in some crops, under damage without unknown levels."""
        pixels = sample.pixels[crops]
        count = len(turns)
        out = sample.folds[list(turns)][:, crops].reshape(-1, *pixels.shape[1:])

        def repeated(values: np.ndarray) -> np.ndarray:
            return np.tile(values[crops], (count, 1, 1)) if len(values) > 1 else values

        hidden = out | repeated(~sample.visible)
        assumed = replace(replace(damage, hidden=None).mapped(repeated), hidden=hidden)
        corners = [sample.corners[row] for row in crops.tolist()] * count
        posterior = candidate.solve(np.tile(pixels, (count, 1, 1)), assumed, corners, effort="quick")
        means, variances, predicted = (np.zeros(sample.pixels.shape, kind) for kind in (np.float32, np.float32, bool))
        for whole, values, lost in ((means, posterior.means, 0.5), (variances, posterior.variances, 0.25)):
            known = np.where(out, np.nan_to_num(values, nan=lost), 0)
            whole[crops] = known.reshape(count, *pixels.shape).sum(0)
        predicted[crops] = out.reshape(count, *pixels.shape).any(0)
        return cls(sample, means, variances, predicted & sample.visible, bool(np.isnan(posterior.means).all()))

    def __add__(self, other: Prediction) -> Prediction:
        """Join predictions of different turns."""
        pairs = ((self.means, other.means), (self.variances, other.variances))
        means, variances = (np.where(other.mask, theirs, ours) for ours, theirs in pairs)
        diverged = self.diverged and other.diverged
        return Prediction(self.sample, means, variances, self.mask | other.mask, diverged)

    @property
    def scale(self) -> Scale:
        """The levels that may be compared."""
        return self.sample.damage.scale(grey=self.sample.grey)

    @property
    def _alike(self) -> bool:
        """True for flips whose probability is not known pixel by pixel, so that pixels may be counted."""
        damage = self.sample.damage
        return not (self.sample.grey or (damage.unknown is None and isinstance(damage.p, np.ndarray)))

    @cached_property
    def counts(self) -> np.ndarray:
        """Predicted pixels of each picture that were seen white, and black, by their log-odds, (2, N, BINS)."""
        sample = self.sample
        odds = log_odds_of(self.means.astype(np.float64))
        bins = ((odds + MOST_LOG_ODDS) * ((BINS - 1) / (2 * MOST_LOG_ODDS))).round().astype(int)
        bins += BINS * sample.owner[:, None, None]
        white = sample.pixels > 0.5
        both = (np.bincount(bins[colour & self.mask], minlength=BINS * sample.count) for colour in (white, ~white))
        return np.stack([counts.reshape(sample.count, BINS) for counts in both])

    def counted(self, levels: np.ndarray) -> np.ndarray:
        """log p of the predicted pixels of each picture at some levels of flips, (L, N), in nats.

        Of the factors by which log-odds may be too large the best one counts.
        """
        odds = np.linspace(-MOST_LOG_ODDS, MOST_LOG_ODDS, BINS)
        flips = BitFlip(levels[:, None])

        def at(factor: float) -> np.ndarray:
            of_bins = (flips.log_predictive(white, probability_of(odds / factor)) for white in (True, False))
            return np.sum([log_p @ count.T for log_p, count in zip(of_bins, self.counts, strict=True)], 0)

        return np.max([at(factor) for factor in SURER], 0)

    @cached_property
    def curve(self) -> np.ndarray:
        """log p of each picture at each level of the scale, (L, N), or at the levels that are known, (1, N)."""
        sample = self.sample
        levels = self.scale.levels
        if self._alike:
            return self.counted(levels)
        cases = (sample.damage,) if sample.damage.unknown is None else map(sample.damage.at, levels)
        log_p = (case.log_predictive(sample.pixels, self.means, self.variances, grey=sample.grey) for case in cases)
        return np.stack([sample.sums(np.where(self.mask, values, 0)) for values in log_p])

    @property
    def surprise(self) -> np.ndarray:
        """How many times as many predicted pixels are wrong as the candidate expects, (N,)."""
        white = self.means > 0.5
        wrong = np.minimum(self.means, 1 - self.means)
        count = self.sample.sums((white != (self.sample.pixels > 0.5)) & self.mask)
        return np.asarray((count + 1) / (self.sample.sums(np.where(self.mask, wrong, 0)) + 1))

    @property
    def nats(self) -> np.ndarray:
        """log p at the best level of each picture, (N,), by which candidates are compared."""
        return np.asarray(self.curve.max(0))

    @property
    def bits(self) -> np.ndarray:
        """The score: bits per pixel of each picture, (N,)."""
        return np.asarray(self.nats / self.sample.sums(self.mask).clip(1) / np.log(2))

    def ahead(self, levels: Sequence[Level | None]) -> np.ndarray:
        """How far each picture is predicted better than by independent pixels, at levels, in bits per pixel, (N,).

        By a mixture of half the prior and half independent pixels, so that a pixel of which the prior is too sure costs
        one bit at most: else a few of them, or blank paper that it believes to be written on, would hide what it knows.
        """
        sample = self.sample
        damage = sample.damage
        if damage.unknown is not None:
            found = np.array([0.0 if level is None else level.value for level in levels])
            damage = damage.at(found[sample.owner][:, None, None])
        prior = damage.log_predictive(sample.pixels, self.means, self.variances, grey=sample.grey)
        gain = np.logaddexp2((prior - sample.independent) / np.log(2), 0) - 1
        return np.asarray(sample.sums(np.where(self.mask, gain, 0)) / sample.sums(self.mask).clip(1))


def level_of(prediction: Prediction, index: int) -> Level | None:
    """The level at which a picture is predicted best, and those that may be; None if none was unknown.

    A level may be if it is `CHANCE` standard errors away at most: if the log-likelihood is lower by half the square of
    that (Wilks, Ann. Math. Statist. 9, 1938).
    """
    unknown = prediction.sample.damage.unknown
    if unknown is None:
        return None
    curve = prediction.curve[:, index]
    scale = prediction.scale
    may_be = scale.levels[curve >= curve.max() - CHANCE**2 / 2]
    none = unknown == "sigma" and curve.argmax() == 0  # no more than rounding adds
    best = 0.0 if none else float(scale.level(np.array(_peak(curve, scale.positions))))
    return Level(unknown, best, at_least=float(may_be.min()), at_most=float(may_be.max()))


def _peak(curve: np.ndarray, places: np.ndarray) -> float:
    """The maximum of a curve over evenly spaced points: the vertex of the parabola through the best three."""
    best = int(curve.argmax())
    if not 0 < best < len(curve) - 1:
        return float(places[best])
    left, top, right = curve[best - 1 : best + 2]
    bend = 2 * (left - 2 * top + right)
    return float(places[best] + (places[1] - places[0]) * (left - right) / (bend or 1))
