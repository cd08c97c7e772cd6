"""Choose the noise level of an image by its evidence: how probable a prior finds the image at each level.

log p(y | level) = log Z(prior under evidence) + log p(y | x = 0, level) - log Z(prior). A solver computes the first
term: a channel's fields are log p(y | x) up to a constant in x, chosen as zero at x = 0. The second term is that
constant. The third is the same for all levels. Maximising this is type II maximum likelihood (MacKay, 2003, ch. 28).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from restore.channels.levels import Scale
from restore.marginals import Marginals, NoiseLevel, Status
from restore.zoo.description import Description

# Images whose levels are tried at a time.
BLOCK = 64

# Beyond the best level by so many the next is tried, if none is known there. Solvers take longest at strong noise, to
# which few images lead.
STRIDE = 2

# Maps numbers of images (R,) and a level for each (R,) to the log-evidence of each (R,), in nats and up to a constant
# per image, and to whether the solver converged, boolean (R,).
Evidence = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def choose_level(evidence: Evidence, images: int, scale: Scale) -> NoiseLevel:
    """Find the level of each image that has the highest evidence.

    Some levels of the scale are tried, and then those beside and between that are still in question, many images side
    by side. A parabola through the best level and its neighbours refines it, except at an end of the scale or beside a
    level whose evidence is not a number.
    """
    parts = []
    for first in range(0, images, BLOCK):
        parts.append(_climbed(evidence, np.arange(first, min(first + BLOCK, images)), scale.levels))
    curve, converged = (np.concatenate(part) for part in zip(*parts, strict=True))
    peaks = _peaks(_counting(curve, converged), scale.places)
    return NoiseLevel(scale.level(peaks), scale.levels, curve, converged)


def _climbed(evidence: Evidence, images: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The evidence (N, G) of images at the levels on the way to the best, -inf at others; and what converged."""
    shape = (len(images), len(levels))
    curve, converged, met = np.full(shape, -np.inf), np.ones(shape, bool), np.zeros(shape, bool)
    wanted = np.zeros(shape, bool)
    wanted[:, [len(levels) // 5, len(levels) // 2, 2 * len(levels) // 3]] = True
    while wanted.any():
        # In the order of levels, for solvers take about equally long at equal levels, and the longest decides.
        columns, rows = np.nonzero(wanted.T)
        curve[rows, columns], converged[rows, columns] = evidence(images[rows], levels[columns])
        met |= wanted
        wanted = _in_question(_counting(curve, converged & met), met)
    return curve, converged


def _counting(curves: np.ndarray, converged: np.ndarray) -> np.ndarray:
    """The evidence (N, G) that counts, -inf at other levels.

    Where a solver did not converge it is no log-probability, and often far too high; it counts where none converged.
    """
    known = np.where(np.isfinite(curves), curves, -np.inf)
    sure = np.where(converged, known, -np.inf)
    return np.where(np.isneginf(sure).all(1, keepdims=True), known, sure)


def _in_question(curves: np.ndarray, met: np.ndarray) -> np.ndarray:
    """The levels to try next, boolean (N, G), from the evidence that counts, -inf at others, and the levels met."""
    rows, count = np.arange(len(curves)), curves.shape[1]
    best = curves.argmax(1)
    place = np.arange(count)
    below = np.where(met & (place < best[:, None]), place, -1).max(1)
    above = np.where(met & (place > best[:, None]), place, count).min(1)
    # Halfway to the next level met, and two levels on where there is none.
    left = np.where(below < 0, (best - STRIDE).clip(0), (below + best) // 2)
    right = np.where(above == count, (best + STRIDE).clip(max=count - 1), (above + best + 1) // 2)
    wanted = np.zeros_like(met)
    wanted[rows, left] = wanted[rows, right] = True
    wanted[np.isneginf(curves).all(1)] = True
    return wanted & ~met


def _peaks(curves: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Where curves (N, G) over evenly spaced places are highest, (N,); the first place if all is -inf."""
    rows, best = np.arange(len(curves)), curves.argmax(1)
    middle = best.clip(1, len(places) - 2)
    left, top, right = (curves[rows, middle + side] for side in (-1, 0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (left - right) / (2 * (left - 2 * top + right))
    inside = (best == middle) & np.isfinite(shift)
    return places[best] + np.where(inside, shift, 0) * (places[1] - places[0])


def log_partition(about: Description, solve: Callable[[np.ndarray], Marginals]) -> float:
    """log Z of a prior alone, in nats: as stored, else by its own solver.

    It is NaN if the prior is conditional or the solver does not converge.

    Args:
        about: the prior's description.
        solve: the marginals of images (1, H, W) of which no pixel was seen.
    """
    if about.conditional:
        return float("nan")
    if about.log_partition:
        return about.log_partition
    found = solve(np.zeros((1, *about.image_shape)))
    return float(found.log_partition[0]) if found.status[0] == Status.CONVERGED else float("nan")
