"""Variations of training images that leave them what they are: moved by a pixel, mirrored, with less contrast.

A prior of a few thousand images knows little of how such images move and are lit; it is told so by the images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images


def varied(images: Images, *, copies: int, shift: int, mirror: bool, contrast: Sequence[float], seed: int) -> Images:
    """Every image `copies` times, each time varied by a draw of its own; or the images as they are for no copies.

    Numpy promises the raw bits drawn here for all its versions. They are none of those that `sample_binary` draws.

    Args:
        images: shape (N, H, W), uint8.
        copies: 0, or how often.
        shift: pixels that an image moves at most, up or down and to either side; what comes in at a border repeats it.
        mirror: whether left and right change places, every other time.
        contrast: the lowest and the highest factor of an image's differences from its mean. Grey levels beyond black
            and white become those.
        seed: of the draw.

    Returns:
        Shape (copies · N, H, W), uint8, all images once, then all of them again; or `images`.
    """
    if not copies:
        return images
    bits = np.random.PCG64(seed).jumped()
    return np.concatenate([_once(images, _uniform(bits, len(images)), shift, mirror, contrast) for _ in range(copies)])


def _uniform(bits: np.random.PCG64, count: int) -> NDArray[np.float64]:
    """Four numbers from [0, 1) for every image, shape (4, count, 1)."""
    return (bits.random_raw((4, count, 1)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _once(images: Images, uniform: NDArray[np.float64], shift: int, mirror: bool, contrast: Sequence[float]) -> Images:
    down, right = (np.floor(number * (2 * shift + 1)).astype(np.intp) - shift for number in uniform[:2])
    rows, columns = (
        (np.arange(size) - by).clip(0, size - 1) for size, by in zip(images.shape[1:], (down, right), strict=True)
    )
    columns = np.where(mirror & (uniform[2] < 0.5), columns[:, ::-1], columns)
    moved = images[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    low, high = contrast
    mean, factor = moved.mean((1, 2), keepdims=True), low + (high - low) * uniform[3][:, :, None]
    return np.rint(mean + factor * (moved - mean)).clip(0, 255).astype(np.uint8)
