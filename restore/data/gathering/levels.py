"""Find out whether images are black and white or grey, which pixels are white, and whether the ground is light."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images

Levels: TypeAlias = Literal["binary", "grey"]

# With a smaller share of pixels near black or near white, images are grey. MNIST has .96, the CBCL faces .73, and an
# image with all levels equally frequent has .75.
_BINARY = 0.9
_LEVELS = np.arange(256)


def counted_levels(images: Images) -> NDArray[np.int64]:
    """How many pixels have each of the 256 grey levels."""
    return np.bincount(images.reshape(-1), minlength=256)


def threshold_of(counts: NDArray[np.int64]) -> int:
    """A level from 0 to 254 that separates black from white: the middle of two levels, or Otsu's for more.

    Args:
        counts: number of pixels with each level, (256,), at least two of them above 0.
    """
    present = np.flatnonzero(counts)
    if len(present) == 2:
        return int(present.sum() // 2)
    from skimage.filters import threshold_otsu

    return int(threshold_otsu(hist=(counts, _LEVELS)))


def extremes(counts: NDArray[np.int64]) -> tuple[Levels, float, tuple[int, int]]:
    """Whether pixels are black or white, the share of them that is, and the mean dark and mean bright level.

    A pixel is near black or white unless its level is in the middle half between the mean of the levels up to the
    threshold and the mean of those above.

    Args:
        counts: as in `threshold_of`.
    """
    bright = threshold_of(counts) < _LEVELS
    dark_mean, bright_mean = (np.average(_LEVELS[part], weights=counts[part]) for part in (~bright, bright))
    quarter = (bright_mean - dark_mean) / 4
    middle = (dark_mean + quarter < _LEVELS) & (bright_mean - quarter > _LEVELS)
    share = 1 - counts[middle].sum() / counts.sum()
    return "binary" if share >= _BINARY else "grey", float(share), (round(dark_mean), round(bright_mean))


def on_light_ground(images: Images, threshold: int) -> bool:
    """Whether most border pixels of images (N, H, W) are white, so that the shapes are dark."""
    white = images > threshold
    border = np.ones(white.shape[1:], dtype=bool)
    border[1:-1, 1:-1] = False
    return bool(white[:, border].mean() > 0.5)
