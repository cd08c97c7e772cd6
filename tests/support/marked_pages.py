"""A page of print, and marks on it."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

HEIGHT, WIDTH = 300, 420


def text() -> np.ndarray:
    """Lines of print, and wide margins."""
    image = Image.new("1", (WIDTH, HEIGHT))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    for row in range(9):
        draw.text((60, 50 + 22 * row), "Jackdaws love my big sphinx: 3.5 i.", True, font)
    return np.array(image)


TEXT = text()


def dotted(turn: float, pitch: float = 7.0, side: int = 2) -> np.ndarray:
    dots = np.zeros((HEIGHT, WIDTH), bool)
    steps = np.arange(-80, 80) * pitch
    rows, columns = np.meshgrid(steps, steps, indexing="ij")
    down, across = (
        np.rint(rows * np.cos(turn) + columns * np.sin(turn)).astype(int),
        np.rint(columns * np.cos(turn) - rows * np.sin(turn)).astype(int),
    )
    inside = (down > 90) & (down < 190) & (across > 20) & (across < WIDTH - 30)
    for row, column in zip(down[inside], across[inside], strict=True):
        dots[row : row + side, column : column + side] = True
    return dots


def dirty(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The page with bars of dirt of 1 to 14 pixels, and where these are."""
    dice, ink = np.random.default_rng(seed), TEXT.copy()
    for row, column in dice.integers(3, (HEIGHT - 10, WIDTH - 10), (count, 2)):
        down, right = dice.integers(1, (3, 8))
        ink[row : row + down, column : column + right] = True
    return ink, ink & ~TEXT
