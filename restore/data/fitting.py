"""Bring images of many sizes to one: average over area, or draw patches."""

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


def resized(image: Images, shape: tuple[int, int]) -> Images:
    """Average an image (H, W) over the area that each new pixel covers, as in restoring; (h, w), uint8."""
    if image.shape == shape:
        return image
    return np.rint(shrink(image.astype(np.float64), None, shape)[0]).astype(np.uint8)


def spread(count: int, among: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Share `count` patches evenly, up to one, between the images in the mask `among`, (N,)."""
    quotas = np.zeros(len(among), dtype=np.intp)
    numbers = np.flatnonzero(among)
    quotas[numbers] = count // len(numbers)
    quotas[numbers[fixed_order(len(numbers), seed)[: count % len(numbers)]]] += 1
    return quotas


def drawn(quotas: NDArray[np.intp], sizes: NDArray[np.intp], shape: tuple[int, int], seed: int) -> NDArray[np.intp]:
    """Draw first row and column, (P, 2), of patches of a shape: `quotas` (N,) from each image of these sizes (N, 2)."""
    image = np.repeat(np.arange(len(quotas)), quotas)
    # A stream that no other draw with the same seed uses.
    numbers = fractions(np.random.PCG64(seed).jumped(2), (len(image), 2))
    return (numbers * (sizes[image] - np.array(shape) + 1)).astype(np.intp)


def patches(image: Images, places: NDArray[np.intp], shape: tuple[int, int]) -> Images:
    """Cut patches (P, h, w) out of an image (H, W) at these first rows and columns, (P, 2)."""
    return np.lib.stride_tricks.sliding_window_view(image, shape)[places[:, 0], places[:, 1]]
