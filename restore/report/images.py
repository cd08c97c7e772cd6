"""Strips of images for the page, from flat tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from restore.priors import ConvolutionalRBM
from restore.report.page import Strip
from restore.report.pictures import GAP, grey, magnification, png, tiled

Colours = Callable[[NDArray[np.floating]], NDArray[np.uint8]]

# The page's width for images, and beside a label, in pixels of the screen.
WIDE, NARROW = 900, 740


def columns_of(width: int, room: int, times: int) -> int:
    """How many magnified images of a width fit side by side."""
    return max(1, room // ((width + GAP) * times))


def strip(images: Tensor, shape: tuple[int, int], label: str = "", colours: Colours = grey) -> Strip:
    """Images laid out to fit the page.

    Args:
        images: (N, H·W), N at least 1.
        shape: (H, W).
        label: what they are.
        colours: maps values (N, H, W) to colours (N, H, W, 3).
    """
    times = magnification(*shape)
    columns = min(len(images), columns_of(shape[1], NARROW if label else WIDE, times))
    sheet = tiled(colours(images.float().cpu().numpy().reshape(-1, *shape)), columns)
    return Strip(label, png(sheet), sheet.shape[1] * times)


def fitting(shape: tuple[int, int], rows: int, label: bool = False) -> int:
    """How many images of a size fill this many rows of the page."""
    return rows * columns_of(shape[1], NARROW if label else WIDE, magnification(*shape))


def receptive_fields(machine: Any, image_shape: tuple[int, int]) -> Tensor:
    """The weights of hidden units to the pixels, (D, H); features of a convolutional machine in the image's middle."""
    weights: Tensor = machine.parameters["weights.0"]
    if not isinstance(machine, ConvolutionalRBM):
        return weights
    features = machine.shared.squares
    top, left = ((size - features.shape[1]) // 2 for size in image_shape)
    fields = features.new_zeros(len(features), *image_shape)
    fields[:, top : top + features.shape[1], left : left + features.shape[2]] = features
    return fields.flatten(1).T


def strongest(weights: Tensor, count: int) -> Tensor:
    """This many columns of weights (D, H) as rows, the largest first; at most all."""
    chosen = weights.norm(dim=0).argsort(descending=True, stable=True)[: max(0, count)]
    return weights.T[chosen]
