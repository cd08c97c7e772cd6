"""Test whether a prior of whole objects explains an image better than published priors of patches do.

Independent pixels are too weak a rival by themselves: any prior of strokes explains a page of text better than they do,
and a prior of digits makes digits of it. A prior of patches has no such objects, and is not tested.

An image of the prior's size is compared with the Ising field, whose neighbours agree; the sample of a larger one (see
`restore.inference.windows.choosing.survey`) with all published priors of patches. Each takes its own best level of
noise if none is told: a prior that does not know an image takes what is foreign for noise, and at that level others see
no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from restore.errors import RestoreError
from restore.inference.damage import Damage
from restore.inference.explained import OFF_PIXELS, Observed
from restore.inference.opening import open_engine
from restore.inference.pictures import PictureEngine, solved
from restore.zoo.description import Description

# The rival of images of one object; and all rivals of larger ones.
FIELD = "ising"
PATCHES = (FIELD, "tap-text", "tap-shapes")

# Levels of flips at which rivals explain an image whose level is unknown.
COARSE = (0.05, 0.15, 0.3)

# Nats by which the field may explain one object better: silhouettes and weak priors of digits are up to 26 behind, and
# silhouettes under priors of digits 56 to 1000.
BEHIND = 40.0

# Nats by which each pixel beyond those of one object has to be explained better than by any rival, so that sheets of
# digits pass and text does not; see benchmarks/recognised.py.
AHEAD = 0.01


def of_objects(about: Description) -> bool:
    """Whether a prior is one of whole binary objects whose evidence is known."""
    return about.comparable and not about.grey and about.tiling.overlap == 1


def allowed(count: np.ndarray | int) -> np.ndarray:
    """Nats by which rivals may explain `count` pixels better than a prior; below 0 it has to be ahead.

    >>> float(allowed(784)), float(allowed(10784))
    (40.0, -60.0)
    """
    return BEHIND - AHEAD * np.maximum(0, np.asarray(count) - OFF_PIXELS)


@cache
def rival(name: str) -> PictureEngine | None:
    """A rival, if it can be had."""
    try:
        return open_engine(name)
    except RestoreError:
        return None


def beaten(engine: PictureEngine, seen: Observed, evidence: np.ndarray, tried: Sequence[Damage] = ()) -> np.ndarray:
    """By how many nats more than may be in doubt the Ising field explains images better than a prior does, or 0.

    Args:
        engine: the prior.
        seen: images at its size, (N, H, W), with their damage; as chosen by the prior where it was not told.
        evidence: log p(image | prior) of each image, (N,).
        tried: other damage of which the field takes the best; empty if the damage was told. It may then be wrong, as
            in `Observed.forgiven`.

    Returns:
        Shape (N,). 0 for priors of patches, of grey images and conditional ones, and where nothing is known.
    """
    about, nothing = engine.description, np.zeros(len(evidence))
    field = rival(FIELD)
    if field is None or not of_objects(about) or seen.certain.all():
        return nothing
    most = np.where(seen.certain, np.inf, allowed(seen.visible.sum((1, 2))))
    levels = [seen, *(replace(seen, damage=damage) for damage in tried)]
    ahead = np.nan_to_num(np.max([_log_p(field, each, about.threshold) for each in levels], axis=0) - evidence)
    doubted = np.flatnonzero(ahead > most)
    if doubted.size and not tried:
        again = seen.rows(doubted).forgiven(about)
        found, _ = solved(engine, again)
        assert found.evidence is not None  # the prior is not conditional
        lead = _log_p(field, again, about.threshold) - (found.evidence - engine.log_partition)
        ahead[doubted] = np.fmin(ahead[doubted], lead)
    return np.where(ahead > most, ahead - most, nothing)


def log_p_of_windows(field: PictureEngine, seen: Observed) -> np.ndarray:
    """log p of images (N, H, W) of 0 and 1 under the Ising field, in windows side by side, (N, rows, columns)."""
    height, width = field.description.image_shape
    images, rows, columns = seen.grey.shape
    down, across = -(-rows // height), -(-columns // width)

    def cut(values: np.ndarray, outside: float) -> np.ndarray:
        margins = [(0, 0), (0, down * height - rows), (0, across * width - columns)]
        padded = np.pad(np.broadcast_to(values, seen.grey.shape), margins, constant_values=outside)
        return padded.reshape(images, down, height, across, width).swapaxes(2, 3).reshape(-1, height, width)

    def of_windows(level: np.ndarray) -> np.ndarray:
        return np.repeat(level, down * across, 0) if level.shape[1:] == (1, 1) else cut(level, 0.5)

    told = seen.damage.mapped(of_windows).covering(cut(~seen.visible, True))
    found, _ = solved(field, Observed(cut(seen.grey, 0.0), told))
    assert found.evidence is not None  # the Ising field is not conditional
    return np.asarray(found.evidence - field.log_partition).reshape(images, down, across)


def _log_p(field: PictureEngine, seen: Observed, threshold: int) -> np.ndarray:
    """log p of images (N, H, W) under the Ising field, which takes them in windows side by side; (N,)."""
    white = (seen.grey > threshold / 255).astype(np.float64)
    return log_p_of_windows(field, replace(seen, grey=white)).sum((1, 2))
