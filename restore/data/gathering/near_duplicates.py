"""Find held-out images that nearly repeat a training image, as their scores would be too good.

Images are compared averaged down to 12x12, whatever their sizes. Two are nearly the same if their squared difference is
below half a percent of that of two random images. Handwritten digits of one class differ by more than that, and a copy
saved as JPEG by less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images
from restore.data.gathering.fitting import averaged

SIDE = 12
_SHARE = 0.005
# Images with a smaller mean squared difference, of grey levels from 0 to 1, are always the same: half a level of 255.
_FLOOR = (0.5 / 255) ** 2
# Pairs compared at a time, so that the table of their differences stays small.
_TOGETHER = 1 << 22


def thumbnails(images: Images) -> NDArray[np.float32]:
    """Images (N, H, W) averaged for comparison, (N, 144), from 0 to 1."""
    return (averaged(images, (SIDE, SIDE)).reshape(-1, SIDE**2) / 255).astype(np.float32)


def nearly_same(held: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.intp]:
    """For each held-out thumbnail, (M, D), the number of the nearest known one, (N, D), if it is nearly the same.

    Returns:
        Shape (M,), -1 if none is.
    """
    centre = known.mean(0)
    known, held = known - centre, held - centre
    # Two random images differ by twice the variance.
    bound = max(_SHARE * 2 * float(known.var(0).sum()), _FLOOR * known.shape[1])
    norms = (known**2).sum(1)
    nearest = np.full(len(held), -1)
    least = np.full(len(held), np.inf)
    count = max(1, _TOGETHER // max(1, len(held)))
    for first in range(0, len(known), count):
        part = known[first : first + count]
        # |a - b|² = |a|² + |b|² - 2 a·b; |a|² is the same for all b.
        differences = norms[first : first + count] - 2 * (held @ part.T)
        closest = differences.argmin(1)
        value = differences[np.arange(len(held)), closest]
        nearest = np.where(value < least, first + closest, nearest)
        least = np.minimum(value, least)
    return np.where(least + (held**2).sum(1) <= bound, nearest, -1)
