"""Bring images of many sizes to one: cut out the middle, average over area, or draw patches."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, fixed_order, fractions
from restore.data.gathering.stock import Batch


def commonest(sizes: NDArray[np.intp]) -> tuple[int, int]:
    """The most common of sizes (N, 2); the smallest of equally common ones."""
    counts = Counter((int(height), int(width)) for height, width in sizes)
    return min(counts, key=lambda size: (-counts[size], size[0] * size[1], size))


def cropped(images: Images, shape: tuple[int, int]) -> Images:
    """The middle (N, h, w) of images (N, H, W), which must be at least as large."""
    (height, width), (rows, columns) = images.shape[1:], shape
    top, left = (height - rows) // 2, (width - columns) // 2
    return images[:, top : top + rows, left : left + columns]


def resized(images: Images, shape: tuple[int, int]) -> Images:
    """Average images (N, H, W) over the area that each new pixel covers; (N, h, w), uint8."""
    return images if images.shape[1:] == shape else np.rint(averaged(images, shape)).astype(np.uint8)


def averaged(images: Images, shape: tuple[int, int]) -> NDArray[np.float64]:
    """As `resized`, without rounding: the same as `restore.images.shrink`, for many pictures at once."""
    (height, width), (rows, columns) = images.shape[1:], shape
    # The direction that shrinks more goes first, to leave less for the other.
    if height * columns < width * rows:
        return _means(_means(images, columns, 2), rows, 1)
    return _means(_means(images, rows, 1), columns, 2)


def _means(values: NDArray[Any], count: int, axis: int) -> NDArray[np.float64]:
    """Means over equal parts of an axis; for grey levels they are exact up to a last division."""
    along = np.moveaxis(values, axis, 0)
    edges = np.linspace(0, len(along), count + 1)
    means = np.empty((count, *along.shape[1:]))
    for mean, start, end in zip(means, edges, edges[1:], strict=False):
        # Whole entries between the edges, and parts of those at the edges.
        first, last = math.ceil(start), math.floor(end)
        if first > last:  # both edges are within one entry
            mean[...] = along[last]
            continue
        along[first:last].sum(axis=0, dtype=np.float64, out=mean)
        if start < first:
            mean += (first - start) * along[first - 1]
        if last < end:
            mean += (end - last) * along[last]
        mean /= end - start
    return np.moveaxis(means, 0, axis)


@dataclass(frozen=True, eq=False)
class Patches:
    """The places of patches in images.

    Attributes:
        image: number of each patch's image, (P,).
        top, left: its first row and column there, (P,).
        shape: height and width of all patches.
    """

    image: NDArray[np.intp]
    top: NDArray[np.intp]
    left: NDArray[np.intp]
    shape: tuple[int, int]

    def cut(self, batch: Batch) -> tuple[NDArray[np.intp], Images]:
        """Which patches, (p,), come from the images of a batch, and their pixels, (p, h, w)."""
        numbers, images = batch
        order = np.argsort(numbers)
        row = order[np.searchsorted(numbers, self.image, sorter=order).clip(max=len(numbers) - 1)]
        which = np.flatnonzero(numbers[row] == self.image)
        rows, columns = (
            first[which, None] + np.arange(size) for first, size in zip((self.top, self.left), self.shape, strict=True)
        )
        return which, images[row[which, None, None], rows[:, :, None], columns[:, None, :]]


def spread(count: int, among: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """How many of `count` patches each image gives: equally many up to one, and 0 if it is not `among` the givers.

    Args:
        count: number of patches.
        among: which images give any, (N,).
        seed: decides which give one more.
    """
    quotas = np.zeros(len(among), dtype=np.intp)
    numbers = np.flatnonzero(among)
    quotas[numbers] = count // len(numbers)
    quotas[numbers[fixed_order(len(numbers), seed)[: count % len(numbers)]]] += 1
    return quotas


def drawn(quotas: NDArray[np.intp], sizes: NDArray[np.intp], shape: tuple[int, int], seed: int) -> Patches:
    """Draw random places of patches; within an image every place is equally probable.

    Args:
        quotas: how many patches to draw from each image, (N,).
        sizes: height and width of the images, (N, 2), at least `shape` where any are drawn.
        shape: height and width of a patch.
        seed: seed of the draw.
    """
    image = np.repeat(np.arange(len(quotas)), quotas)
    # Bits that no other draw with the same seed uses.
    numbers = fractions(np.random.PCG64(seed).jumped(2), (len(image), 2))
    top, left = (numbers * (sizes[image] - np.array(shape) + 1)).astype(np.intp).T
    return Patches(image, top, left, shape)
