"""Whether numbers lie in two bands: a mixture of two Gaussians, and how far apart these are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = 200
# How many samples of one Gaussian say what is chance, and the share of them that it covers.
DRAWS, COVERED = 50, 0.95
# The least variance of a Gaussian: energies are kept to a digit behind the point.
ROUNDED = 0.1**2


def separation(values: Sequence[float] | np.ndarray) -> float:
    """Ashman's D of numbers: the distance of two Gaussians' means by the root of their mean variance.

    The Gaussians are fitted by EM (Dempster, Laird & Rubin, 1977), from the split into a lower and an upper part with
    the least variance within. Two bands have more than 2 (Ashman, Bird & Zepf, "Detecting bimodality in astronomical
    datasets", 1994); so may few numbers, by chance.

    Args:
        values: at least four, not all equal.

    >>> draw = np.random.default_rng(0)
    >>> [round(separation([*draw.normal(0, 1, 400), *draw.normal(far, 1, 400)])) for far in (5, 10)]
    [5, 10]
    """
    ordered = np.sort(np.asarray(values, float))
    counts, centred = np.arange(2, len(ordered) - 1), ordered - ordered.mean()
    # The sum of squares is the same for all splits: the least variance within is the most between.
    below, total = centred.cumsum()[counts - 1], centred.sum()
    cut = int(counts[np.argmax(below**2 / counts + (total - below) ** 2 / (len(ordered) - counts))])
    parts = ordered[:cut], ordered[cut:]
    shares = np.array([part.size for part in parts]) / ordered.size
    means, variances = (np.array([getattr(part, name)() for part in parts]) for name in ("mean", "var"))
    for _ in range(STEPS):
        variances = np.maximum(variances, ROUNDED)
        logs = np.log(shares / np.sqrt(variances)) - (ordered[:, None] - means) ** 2 / (2 * variances)
        weights = np.exp(logs - np.logaddexp(*logs.T)[:, None])
        shares = weights.mean(0)
        means = (weights * ordered[:, None]).sum(0) / weights.sum(0)
        variances = (weights * (ordered[:, None] - means) ** 2).sum(0) / weights.sum(0)
    return float(abs(means[1] - means[0]) / np.sqrt(np.maximum(variances, ROUNDED).mean()))


def by_chance(count: int) -> float:
    """The separation that this many numbers from one Gaussian have at most, in 95 % of the samples."""
    draw = np.random.default_rng(0)
    return float(np.quantile([separation(draw.normal(size=count)) for _ in range(DRAWS)], COVERED))
