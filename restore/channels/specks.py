"""Specks: black or white blobs of a few pixels on an image of ink, like the dirt and drop-outs of a scan."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from restore.channels.values import require

# Row and column of a pixel.
Cell: TypeAlias = tuple[int, int]

# The fewest and the most pixels of a speck. All sizes are equally likely, and so are all shapes of a size.
SMALLEST, LARGEST = 2, 8

# How many shapes of 0, 1, 2 ... pixels there are: pixels joined by their edges, turned or mirrored ones apart (fixed
# polyominoes; Golomb, Polyominoes, 1994; sequence A001168 of the OEIS).
POLYOMINOES = np.array([1, 1, 2, 6, 19, 63, 216, 760, 2725])

# Denser specks lie on each other, and are no longer specks.
DENSEST = 0.2


@dataclass(frozen=True)
class Specks:
    """Specks of 2 to 8 pixels at random places, each black or white: on paper of the same colour it does not show.

    Attributes:
        share: the pixels of all specks over those of the image, in [0, 1/5].

    >>> damaged = Specks(0.1).corrupt(np.ones((400, 400)), np.random.default_rng(0))
    >>> round(float((damaged == 0).mean()), 2)
    0.05
    """

    share: float

    def __post_init__(self) -> None:
        require(self.share, f"specks cover a share of at most {DENSEST:g} of the pixels", DENSEST)

    def __str__(self) -> str:
        return f"specks:{self.share!r}"

    @property
    def rate(self) -> float:
        """The average number of specks of each colour per pixel."""
        return self.share / (SMALLEST + LARGEST)

    def corrupt(self, x: Any, generator: Any) -> Any:
        """Damage images (..., H, W), which each have their own specks."""
        if isinstance(x, np.ndarray):
            images = x.reshape(-1, *x.shape[-2:])
            return np.stack([self._over(image, generator) for image in images]).reshape(x.shape)
        import torch

        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        return torch.from_numpy(self.corrupt(x.cpu().numpy(), np.random.default_rng(seed))).to(x)

    def _over(self, image: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        height, width = image.shape
        # Specks begin before the upper and left edges too.
        room = np.array([height + LARGEST - 1, width + LARGEST - 1])
        count = generator.poisson(2 * self.rate * room.prod())
        corners = (generator.random((count, 1, 2)) * room).astype(int) - (LARGEST - 1)
        sizes = generator.integers(SMALLEST, LARGEST + 1, count)
        colours = generator.integers(0, 2, count)
        chosen = (generator.random(count) * POLYOMINOES[sizes]).astype(int)
        down, right = np.moveaxis(corners + _cells()[sizes, chosen], -1, 0)
        inside = (down >= 0) & (down < height) & (right >= 0) & (right < width)
        image = image.copy()
        image[down[inside], right[inside]] = np.broadcast_to(colours[:, None], inside.shape)[inside]
        return image


@functools.cache
def _cells() -> np.ndarray:
    """Rows and columns of the pixels of every shape, (sizes, shapes, `LARGEST`, 2); smaller ones repeat a pixel."""
    cells = np.zeros((LARGEST + 1, POLYOMINOES.max(), LARGEST, 2), int)
    counts = [0] * (LARGEST + 1)
    for shape in _grown((), ((0, 0),), frozenset({(0, 0)})):
        size = len(shape)
        cells[size, counts[size]] = (*shape, *shape[:1] * (LARGEST - size))
        counts[size] += 1
    return cells - cells.min(2, keepdims=True)


def _grown(shape: tuple[Cell, ...], untried: tuple[Cell, ...], met: frozenset[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Each shape of up to `LARGEST` pixels that goes on from another, once (Redelmeier, Discrete Math. 36, 1981)."""
    while untried:
        *rest, (row, column) = untried
        untried = tuple(rest)
        whole = (*shape, (row, column))
        yield whole
        if len(whole) < LARGEST:
            beside = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}
            new = tuple(cell for cell in sorted(beside - met) if cell > (0, 0))
            yield from _grown(whole, (*untried, *new), met.union(new))
