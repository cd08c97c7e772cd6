"""Put images side by side in one PNG, in grey or in colours for weights; only Pillow is needed."""

from __future__ import annotations

import io
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Pixels between images, and their colour, which no image has.
GAP, GROUND = 2, (127, 127, 127)

# Red for weights above zero and blue for those below, as in matplotlib's RdBu.
POSITIVE, NEGATIVE = np.array([178, 24, 43.0]), np.array([33, 102, 172.0])

# The width in pixels that an image should have on a screen.
READABLE = 56


def grey(images: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Values in [0, 1], (N, H, W), as grey colours (N, H, W, 3); others are clipped, and NaN is black."""
    levels = np.rint(255 * np.nan_to_num(images).clip(0, 1)).astype(np.uint8)
    return np.repeat(levels[..., None], 3, axis=-1)


def signed(images: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Weights (N, H, W) as colours (N, H, W, 3), each image on its own scale: red above 0, blue below; NaN is 0."""
    finite = np.nan_to_num(images)
    largest = np.abs(finite).max(axis=(1, 2), keepdims=True)
    relative = (finite / np.where(largest > 0, largest, 1))[..., None]
    # A square root, so that small weights can be seen beside the largest.
    strength = np.sqrt(np.abs(relative))
    return np.rint(255 + strength * (np.where(relative > 0, POSITIVE, NEGATIVE) - 255)).astype(np.uint8)


def tiled(images: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Images (N, H, W, 3) in rows of `columns`, with a gap around each."""
    count, height, width, _ = images.shape
    rows = math.ceil(count / columns)
    padded = np.full((rows * columns, height + GAP, width + GAP, 3), GROUND, dtype=np.uint8)
    padded[:count, :height, :width] = images
    sheet = padded.reshape(rows, columns, height + GAP, width + GAP, 3).swapaxes(1, 2)
    sheet = sheet.reshape(rows * (height + GAP), columns * (width + GAP), 3)
    return np.pad(sheet, ((GAP, 0), (GAP, 0), (0, 0)), constant_values=GROUND[0])


def magnification(height: int, width: int) -> int:
    """How many times to magnify images of this size."""
    return max(1, READABLE // max(height, width))


def png(sheet: NDArray[np.uint8], times: int = 1) -> bytes:
    """A PNG file of colours (H, W, 3), magnified."""
    stream = io.BytesIO()
    larger = np.repeat(np.repeat(sheet, times, axis=0), times, axis=1)
    Image.fromarray(larger).save(stream, format="PNG", optimize=True)
    return stream.getvalue()
