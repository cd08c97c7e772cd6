"""Vary training images in ways that keep their meaning: shifted by a pixel, bent, mirrored, with other contrast.

A few thousand images do not cover all positions and lights; their variations do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, fractions
from restore.data.truth import joined, planes

# Points across and down at which an image is bent, smoothly between them.
BENDING_POINTS = 4

# Pixels that are bent at a time.
PIXELS_AT_ONCE = 2**22


def varied(
    images: Images,
    *,
    copies: int,
    shift: int,
    mirror: bool,
    contrast: Sequence[float],
    bend: float = 0.0,
    seed: int,
    pairs: bool = False,
) -> Images:
    """Repeat every image `copies` times, each time varied at random; 0 copies leave the images as they are.

    Args:
        images: shape (N, H, W), uint8.
        copies: number of varied copies, or 0.
        shift: the most pixels that an image moves up, down or sideways; its border is repeated.
        mirror: exchange left and right, half of the time.
        contrast: the smallest and largest factor for an image's differences from its mean, before it is clipped.
        bend: the most pixels that each of 4x4 places of an image moves, down and sideways, what lies between them
            smoothly with them (elastic distortions: Simard, Steinkraus & Platt, ICDAR 2003).
        seed: seed of the variations.
        pairs: True for pages with their truth (`restore.data.truth`), which moves with them, and has no contrast.

    Returns:
        Shape (copies · N, H, W), uint8: all images once, then all again; or `images`.

    >>> images = np.zeros((10, 28, 28), np.uint8)
    >>> varied(images, copies=3, shift=1, mirror=True, contrast=(0.8, 1.2), seed=0).shape
    (30, 28, 28)
    """
    if not copies:
        return images
    # A stream that no other draw with the same seed uses.
    bits = np.random.PCG64(seed).jumped()
    shape = (4, len(images), 1)
    every = []
    for _ in range(copies):
        uniform = fractions(bits, shape)
        moved = _moved(images, uniform, shift, mirror)
        page, *truth = planes(moved) if pairs else (moved,)
        both = [_with_contrast(page, uniform[3], contrast), *truth]
        both = _bent(both, bend, bits) if bend else both
        every.append(joined(*both) if pairs else both[0])
    return np.concatenate(every)


def _moved(images: Images, uniform: NDArray[np.float64], shift: int, mirror: bool) -> Images:
    steps = np.floor(uniform[:2] * (2 * shift + 1)).astype(np.intp) - shift
    sides = zip(images.shape[1:], steps, strict=True)
    rows, columns = ((np.arange(size) - step).clip(0, size - 1) for size, step in sides)
    columns = np.where(mirror & (uniform[2] < 0.5), columns[:, ::-1], columns)
    numbers = np.arange(len(images))[:, None, None]
    return images[numbers, rows[:, :, None], columns[:, None, :]]


def _with_contrast(images: Images, uniform: NDArray[np.float64], contrast: Sequence[float]) -> Images:
    low, high = contrast
    mean = images.mean((1, 2), keepdims=True)
    factor = low + (high - low) * uniform[:, :, None]
    return np.rint(mean + factor * (images - mean)).clip(0, 255).astype(np.uint8)


def _bent(layers: Sequence[Images], bend: float, bits: np.random.PCG64) -> list[Images]:
    """Move 4x4 places of each image at random, in all its layers, and all else smoothly; its border is repeated."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample, interpolate

    images = np.stack(layers, axis=1)
    height, width = images.shape[2:]
    result = np.empty_like(images)
    count = max(1, PIXELS_AT_ONCE // (height * width))
    for first in range(0, len(images), count):
        part = images[first : first + count]
        moves = torch.from_numpy(2 * fractions(bits, (len(part), 2, BENDING_POINTS, BENDING_POINTS)) - 1).float() * bend
        smooth = interpolate(moves, (height, width), mode="bicubic", align_corners=True).movedim(1, -1)
        still = affine_grid(torch.eye(2, 3).expand(len(part), 2, 3), [len(part), 1, height, width], align_corners=False)
        # A sampling grid spans the image from -1 to 1.
        where = still + smooth * torch.tensor([2 / width, 2 / height])
        values = torch.from_numpy(part).float()
        bent = grid_sample(values, where, mode="bilinear", padding_mode="border", align_corners=False)
        result[first : first + count] = bent.round().to(torch.uint8).numpy()
    return [result[:, layer] for layer in range(len(layers))]
