"""Bring images of many sizes to one: cut out the middle, average over area, or draw patches."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, fixed_order, fractions
from restore.images import shrink


def commonest(sizes: NDArray[np.intp]) -> tuple[int, int]:
    """Find the most common of sizes (N, 2); the smallest of equally common ones."""
    counts = Counter((int(height), int(width)) for height, width in sizes)
    return min(counts, key=lambda size: (-counts[size], size[0] * size[1], size))


def cropped(image: Images, shape: tuple[int, int]) -> Images:
    """Cut the middle (h, w) out of an image (H, W), which must be at least as large."""
    (height, width), (rows, columns) = image.shape, shape
    top, left = (height - rows) // 2, (width - columns) // 2
    return image[top : top + rows, left : left + columns]


def resized(image: Images, shape: tuple[int, int]) -> Images:
    """Average an image (H, W) over the area that each new pixel covers, as in restoring; (h, w), uint8."""
    if image.shape == shape:
        return image
    return np.rint(shrink(image.astype(np.float64), None, shape)[0]).astype(np.uint8)


def spread(count: int, among: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Decide how many of `count` patches each image gives: equally many up to one, if it is `among` the givers.

    Args:
        count: number of patches.
        among: which images give any, (N,).
        seed: decides which give one more.

    Returns:
        Shape (N,).
    """
    quotas = np.zeros(len(among), dtype=np.intp)
    numbers = np.flatnonzero(among)
    quotas[numbers] = count // len(numbers)
    quotas[numbers[fixed_order(len(numbers), seed)[: count % len(numbers)]]] += 1
    return quotas


def drawn(quotas: NDArray[np.intp], sizes: NDArray[np.intp], shape: tuple[int, int], seed: int) -> NDArray[np.intp]:
    """Draw random places of patches; within an image every place is equally probable.

    Args:
        quotas: how many patches to draw from each image, (N,).
        sizes: height and width of the images, (N, 2), at least `shape` where any are drawn.
        shape: height and width of a patch.
        seed: seed of the draw.

    Returns:
        First row and first column of each patch, (P, 2), image after image.
    """
    image = np.repeat(np.arange(len(quotas)), quotas)
    # Bits that no other draw with the same seed uses.
    numbers = fractions(np.random.PCG64(seed).jumped(2), (len(image), 2))
    return (numbers * (sizes[image] - np.array(shape) + 1)).astype(np.intp)


def patches(image: Images, places: NDArray[np.intp], shape: tuple[int, int]) -> Images:
    """Cut patches (P, h, w) out of an image (H, W) at these first rows and columns, (P, 2)."""
    return np.lib.stride_tricks.sliding_window_view(image, shape)[places[:, 0], places[:, 1]]
