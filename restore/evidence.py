"""The noise level of an image, chosen by its evidence: how probable a prior finds the image at each level.

log p(y | level) = log Z(prior under evidence) + log p(y | x = 0, level) - log Z(prior). The first is what a solver
computes, for a channel's fields are log p(y | x) up to a constant in x, which is zero at x = 0; the second is that
constant; the third is the same for all levels. Maximising it is type II maximum likelihood (MacKay, 2003, ch. 28).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from restore.description import Description
from restore.marginals import Marginals, NoiseLevel, Status

# Beyond these evidence grows no more: CERTAIN of `restore.channels.bit_flip`, and the sigma that has the CERTAIN of
# `restore.channels.gaussian_noise`.
CERTAIN = 1000.0
SHARPEST = 0.01

# Images whose levels are tried at a time.
BLOCK = 64

# From the numbers of images (R,) and a level for each (R,) to the log-evidence of each (R,), in nats and up to a
# constant per image, and whether the solver converged, boolean (R,).
Evidence = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Scale:
    """The levels that are tried.

    Attributes:
        level: from places on the scale to levels, increasing.
        places: evenly spaced; at least three.
    """

    level: Callable[[np.ndarray], np.ndarray]
    places: np.ndarray

    @property
    def levels(self) -> np.ndarray:
        return self.level(self.places)


def _logistic(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))


def _log_odds_between(low: float, high: float, count: int) -> np.ndarray:
    return np.linspace(np.log(low / (1 - low)), np.log(high / (1 - high)), count)


# From one pixel or two of a small image to nearly half: of more flips an image is the inversion of one with fewer.
FLIPS = Scale(_logistic, _log_odds_between(0.002, 0.48, 15))
# Salt and pepper may well be the greater part.
IMPULSES = Scale(_logistic, _log_odds_between(0.002, 0.9, 20))
# Standard deviations of Gaussian noise, where black is 0 and white is 1; under more little of an image is left, and
# solvers take longer and longer.
NOISE = Scale(np.exp, np.linspace(np.log(SHARPEST), np.log(0.5), 17))


def choose_level(evidence: Evidence, images: int, scale: Scale) -> NoiseLevel:
    """The level of each image that has the highest evidence.

    Every level of the scale is tried, many images side by side; a parabola through the best and its neighbours tells
    what lies between. At an end of the scale, and beside a level whose evidence is no number, it is the best as it is.

    Args:
        evidence: computes it for some images, each at a level.
        images: how many there are.
        scale: what to try.
    """
    tried = len(scale.places)
    parts = []
    for first in range(0, images, BLOCK):
        numbers = np.arange(first, min(first + BLOCK, images))
        parts.append(evidence(np.repeat(numbers, tried), np.tile(scale.levels, len(numbers))))
    curve, converged = (np.concatenate(part).reshape(images, tried) for part in zip(*parts, strict=True))
    peaks = _peaks(np.where(np.isfinite(curve), curve, -np.inf), scale.places)
    return NoiseLevel(scale.level(peaks), scale.levels, curve, converged)


def _peaks(curves: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Where curves (N, G) over evenly spaced places are highest, (N,); the first place where all is -inf."""
    rows, best = np.arange(len(curves)), curves.argmax(1)
    middle = best.clip(1, len(places) - 2)
    left, top, right = (curves[rows, middle + side] for side in (-1, 0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (left - right) / (2 * (left - 2 * top + right))
    inside = (best == middle) & np.isfinite(shift)
    return places[best] + np.where(inside, shift, 0) * (places[1] - places[0])


def log_partition(about: Description, solve: Callable[[np.ndarray], Marginals]) -> float:
    """log Z of a prior alone, as its solver finds it, in nats; NaN of a conditional one, or if it does not converge.

    Args:
        about: the prior's description.
        solve: the marginals of images (1, H, W) of which nothing was seen.
    """
    if about.conditional:
        return float("nan")
    found = solve(np.zeros((1, *about.image_shape)))
    return float(found.log_partition[0]) if found.status[0] == Status.CONVERGED else float("nan")


def log_likelihood_of_black(
    about: Description,
    grey: np.ndarray,
    hidden: np.ndarray | None,
    p: float | np.ndarray | None,
    sigma: float | np.ndarray | None,
) -> np.ndarray:
    """log p(y | x = 0) of images, in nats: by how much their evidence differs from log Z of the prior under it.

    Where pixels come through exactly it is that of their evidence, which is finite.

    Args:
        about: whether pixels are grey levels; if not, what counts as white.
        grey, hidden, p, sigma: as in `restore.restoration.PictureEngine.marginals`.

    Returns:
        Shape (N,), float64; hidden pixels add nothing.
    """
    impulses = np.asarray(0.0 if p is None else p, dtype=np.float64)
    of_pixels = _of_grey(grey, impulses, sigma) if about.grey else _of_ink(about.as_known(grey), impulses)
    return np.where(False if hidden is None else hidden, 0.0, of_pixels).sum((1, 2))


def _of_ink(seen: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of `restore.channels.BitFlip`."""
    with np.errstate(divide="ignore"):
        return np.log(np.where(seen > 0, p, 1 - p)).clip(-CERTAIN)


def _of_grey(seen: np.ndarray, p: np.ndarray, sigma: float | np.ndarray | None) -> np.ndarray:
    """Of `restore.channels.SaltAndPepper`, after Gaussian noise."""
    told = np.asarray(0.0 if sigma is None else sigma, dtype=np.float64)
    width = np.maximum(told, SHARPEST)
    with np.errstate(divide="ignore"):
        through = np.log1p(-p) - (seen / width) ** 2 / 2 - np.log(width * np.sqrt(2 * np.pi))
        shown = np.log(np.where((seen == 0) & (told == 0), 1 - p / 2, p / 2))
    return np.where(((seen == 0) | (seen == 1)) & (p > 0), shown, through)
