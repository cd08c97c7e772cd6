"""Discs, rings, squares, triangles and crosses, drawn by code: a data set that needs no files.

White shapes on black, 16x16, one in each picture, with a radius of 4 to 7 pixels, at any place and angle. The five
kinds take turns. No picture occurs twice, so training and test pictures are distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, Split, fractions
from restore.data.sets.named import NamedSet

# Tests for the points of each kind, inside a circle of radius 1.
SHAPE_KINDS: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]] = {
    "disc": lambda u, v: np.hypot(u, v) <= 1,
    "ring": lambda u, v: (np.hypot(u, v) <= 1) & (np.hypot(u, v) > 0.55),
    "square": lambda u, v: np.maximum(abs(u), abs(v)) <= np.sqrt(0.5),
    # Below all three sides; one side is level.
    "triangle": lambda u, v: np.maximum(v, np.sqrt(0.75) * abs(u) - v / 2) <= 0.5,
    "cross": lambda u, v: (np.minimum(abs(u), abs(v)) <= 0.3) & (np.maximum(abs(u), abs(v)) <= 0.95),
}
# The side of a picture, and the bounds of a shape's radius, in pixels.
_SIDE = 16
_RADII = (4.0, 7.0)
# The number of different pictures of each split; enough draws for both; and their seed.
TRAINED, TESTED = 4_000, 1_000
_DRAWS, _SEED = 6_000, 0


def shapes(count: int, seed: int) -> Images:
    """Draw pictures of the kinds in turn, (count, 16, 16), 0 or 255; some may be the same."""
    numbers = fractions(np.random.PCG64(seed), (4, count, 1, 1))
    radius = _RADII[0] + (_RADII[1] - _RADII[0]) * numbers[0]
    row, column = radius + (_SIDE - 2 * radius) * numbers[1:3]
    angle = 2 * np.pi * numbers[3]
    pixels = np.arange(_SIDE) + 0.5
    down = (pixels[:, None] - row) / radius
    right = (pixels - column) / radius
    u = np.cos(angle) * right + np.sin(angle) * down
    v = np.cos(angle) * down - np.sin(angle) * right
    images = np.zeros((count, _SIDE, _SIDE), dtype=np.uint8)
    for number, within in enumerate(SHAPE_KINDS.values()):
        turn = slice(number, None, len(SHAPE_KINDS))
        images[turn][within(u[turn], v[turn])] = 255
    return images


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    drawn = shapes(_DRAWS, _SEED)
    _, first = np.unique(drawn.reshape(_DRAWS, -1), axis=0, return_index=True)
    different = drawn[np.sort(first)]
    return different[:TRAINED] if split == "train" else different[TRAINED : TRAINED + TESTED]


SHAPES = NamedSet("shapes", {"train": (), "test": ()}, _read)
