"""Are images black and white, or grey; which pixels are white; and which of both is the ground."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images

Levels: TypeAlias = Literal["binary", "grey"]

# Below this share of pixels near black or near white, images are grey. MNIST has .96, the CBCL faces .73, and an image
# whose levels are all equally frequent has .75.
_BINARY = 0.9
_LEVELS = np.arange(256)


def counted_levels(images: Images) -> NDArray[np.int64]:
    """How many pixels have each of the 256 grey levels."""
    return np.bincount(images.reshape(-1), minlength=256)


def threshold_of(counts: NDArray[np.int64]) -> int:
    """A level from 0 to 254 that parts black from white: the middle of two, Otsu's of more.

    Args:
        counts: of pixels with each level, (256,), at least two of them above 0.
    """
    present = np.flatnonzero(counts)
    if len(present) == 2:
        return int(present.sum() // 2)
    from skimage.filters import threshold_otsu

    return int(threshold_otsu(hist=(counts, _LEVELS)))


def extremes(counts: NDArray[np.int64]) -> tuple[Levels, float, tuple[int, int]]:
    """Whether pixels are black or white, which share of them is, and the mean levels of dark and of bright ones.

    A pixel is near an extreme unless it lies in the middle half of the way between the mean of the levels up to the
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
    """Whether most pixels at the border of images (N, H, W) are white: what they show is dark."""
    white = images > threshold
    border = np.ones(white.shape[1:], dtype=bool)
    border[1:-1, 1:-1] = False
    return bool(white[:, border].mean() > 0.5)
