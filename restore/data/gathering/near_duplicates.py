"""Held-out images that are nearly the same as one that is learnt from, and would be judged too kindly.

Images are compared as they look from afar: averaged down to 12x12, whatever their sizes. Two are nearly the same if the
squared difference between those is below half a percent of what it is for two images drawn at random. That is less than
what handwritten digits of one class differ by, and more than what a copy loses that is saved as JPEG.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images
from restore.data.gathering.fitting import averaged

SIDE = 12
_SHARE = 0.005
# Mean squared difference of grey levels from 0 to 1 below which any images are the same: half of one level of 255.
_FLOOR = (0.5 / 255) ** 2
# Pairs compared at once, so that the table of their differences stays small.
_TOGETHER = 1 << 22


def thumbnails(images: Images) -> NDArray[np.float32]:
    """Images (N, H, W) as they are compared, (N, 144), from 0 to 1."""
    return (averaged(images, (SIDE, SIDE)).reshape(-1, SIDE**2) / 255).astype(np.float32)


def nearly_same(held: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.intp]:
    """For each held-out thumbnail, (M, D), the number of the nearest of the known ones, (N, D), if that is nearly it.

    Returns:
        Shape (M,), -1 where none is.
    """
    centre = known.mean(0)
    known, held = known - centre, held - centre
    # Two images drawn at random differ by twice the variance.
    bound = max(_SHARE * 2 * float(known.var(0).sum()), _FLOOR * known.shape[1])
    norms = (known**2).sum(1)
    nearest = np.full(len(held), -1)
    least = np.full(len(held), np.inf)
    count = max(1, _TOGETHER // max(1, len(held)))
    for first in range(0, len(known), count):
        part = known[first : first + count]
        # |a - b|² = |a|² + |b|² - 2 a·b, of which |a|² is the same for all that a is compared with.
        differences = norms[first : first + count] - 2 * (held @ part.T)
        closest = differences.argmin(1)
        value = differences[np.arange(len(held)), closest]
        nearest = np.where(value < least, first + closest, nearest)
        least = np.minimum(value, least)
    return np.where(least + (held**2).sum(1) <= bound, nearest, -1)
