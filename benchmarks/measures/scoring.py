"""Damage pictures, repair them with the best of the settings of a filter, and count what is left wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.filters import unet
from benchmarks.filters.binary import Candidate, Seen

HOLES = "8x8 holes"

# What repaired pictures leave wrong, as a share.
Loss = Callable[[Sequence[np.ndarray]], float]


def inverted(clean: Sequence[np.ndarray], p: float, seed: int) -> list[Seen]:
    """Pages with pixels inverted, each with probability p."""
    draw = np.random.default_rng(seed)
    return [Seen(each ^ (draw.random(each.shape) < p), p, np.zeros(each.shape, bool)) for each in clean]


def holed(clean: Sequence[np.ndarray], seed: int) -> list[Seen]:
    """Pages with known holes."""
    draw = np.random.default_rng(seed)
    masks = [unet.holes(draw, each.shape) for each in clean]
    return [Seen(each & ~mask, 0.0, mask) for each, mask in zip(clean, masks, strict=True)]


def least(candidate: Candidate, seen: Sequence[Seen], loss: Loss) -> tuple[float, float, list[np.ndarray]]:
    """The loss with the best of the settings, this setting, and the pages repaired with it."""
    tried = []
    for setting in candidate.settings:
        repaired = [candidate.repair(each, setting) for each in seen]
        tried.append((loss(repaired), setting, repaired))
    return min(tried, key=lambda each: each[0])


def wrong(clean: Sequence[np.ndarray], seen: Sequence[Seen]) -> Loss:
    """The share of wrong pixels; of those in holes, where there are any."""
    scored = [each.hidden if each.hidden.any() else ~each.hidden for each in seen]

    def loss(repaired: Sequence[np.ndarray]) -> float:
        pages = zip(repaired, clean, scored, strict=True)
        return float(np.mean([(ours != truth)[where].mean() for ours, truth, where in pages]))

    return loss
