"""What repairs a binary page without having learnt from any: median, total variation, Ising, biharmonic inpainting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter
from skimage.morphology import closing, footprint_rectangle, opening
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, inpaint_biharmonic

# Log-odds of a pixel that is known exactly.
CERTAIN = 20.0


@dataclass(frozen=True)
class Seen:
    """A damaged page.

    Attributes:
        ink: what is seen, booleans (H, W); paper where nothing is.
        p: the probability that a visible pixel is inverted.
        hidden: which pixels are not seen, booleans (H, W).
    """

    ink: np.ndarray
    p: float
    hidden: np.ndarray

    @property
    def evidence(self) -> np.ndarray:
        """Log-odds of ink at each pixel, float32: 0 where nothing is seen."""
        strength = min(np.log((1 - self.p) / self.p), CERTAIN) if self.p else CERTAIN
        return np.where(self.hidden, 0, np.where(self.ink, strength, -strength)).astype(np.float32)


# Repairs a page with a setting; returns booleans (H, W).
Repair = Callable[[Seen, float], np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A way to repair pages.

    Attributes:
        repair: does it.
        settings: to choose from, knowing the truth.
        flips, holes: whether it undoes them.
    """

    repair: Repair
    settings: tuple[float, ...] = (0,)
    flips: bool = True
    holes: bool = True


def as_seen(seen: Seen, _: float) -> np.ndarray:
    return seen.ink


def median(seen: Seen, side: float) -> np.ndarray:
    """What most pixels around each are; beyond the edges there are none."""
    return uniform_filter(seen.ink.astype(np.float64), int(side)) > 0.5


def open_and_close(seen: Seen, side: float) -> np.ndarray:
    """Opening, then closing by a square; with a negative side the other way round."""
    square = footprint_rectangle((abs(int(side)),) * 2)
    first, second = (opening, closing) if side > 0 else (closing, opening)
    return second(first(seen.ink, square), square)


def non_local_means(seen: Seen, width: float) -> np.ndarray:
    noisy = seen.ink.astype(np.float32)
    return denoise_nl_means(noisy, patch_size=5, patch_distance=7, h=width, fast_mode=True) > 0.5


def bm3d(seen: Seen, sigma: float) -> np.ndarray:
    """Block matching in three dimensions, by the package of its authors, which has to be installed."""
    from bm3d import bm3d as denoised

    return denoised(seen.ink.astype(np.float64), sigma) > 0.5


def filled(seen: Seen, side: float) -> np.ndarray:
    """Holes filled by medians of what is known around, from their rims inwards."""
    from restore.evaluation.baselines import Median

    return restored_by(Median((seen.ink.shape[0], seen.ink.shape[1]), int(side)), seen)


def restored_by(restorer: Any, seen: Seen) -> np.ndarray:
    """The page as one of the package's own baselines restores it."""
    from torch import from_numpy

    from restore.channels import Damage

    damage = Damage(seen.p, hidden=seen.hidden[None])
    shares = restorer.restore(from_numpy(seen.ink).float().reshape(1, -1), damage)
    return np.asarray((shares > 0.5).reshape(seen.ink.shape).numpy())


def total_variation(seen: Seen, weight: float) -> np.ndarray:
    return denoise_tv_chambolle(seen.ink.astype(np.float32), weight) > 0.5


def ising(seen: Seen, coupling: float) -> np.ndarray:
    """Mean field of pixels of which each is coupled to its four neighbours."""
    from benchmarks.filters.mean_field import IsingField

    return restored_by(IsingField((seen.ink.shape[0], seen.ink.shape[1]), coupling), seen)


def biharmonic(seen: Seen, _: float) -> np.ndarray:
    return inpaint_biharmonic(seen.ink.astype(np.float64), seen.hidden, split_into_regions=True) > 0.5


FILTERS = {
    "as it is": Candidate(as_seen),
    "median": Candidate(median, (3, 5), holes=False),
    "total variation": Candidate(total_variation, (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5), holes=False),
    "Ising, mean field": Candidate(ising, (0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8)),
    "biharmonic": Candidate(biharmonic, flips=False),
}

# What else people take for pictures that are not pages.
MORE = {
    "opening and closing": Candidate(open_and_close, (2, -2, 3, -3), holes=False),
    "non-local means": Candidate(non_local_means, (0.3, 0.5, 0.8, 1.2), holes=False),
    "BM3D": Candidate(bm3d, (0.3, 0.5, 0.7, 0.9), holes=False),
    "median from the rim": Candidate(filled, (3, 5), flips=False),
}
