"""Grey pictures in black and white dots: by random thresholds, ordered ones, error diffusion, or a printer's screen.

A prior has to know them, for what is spread at random over a grey area is no noise there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.dice import Dice
from training.data.pen import INK, PAPER, SIDE, anywhere, around, beside, field


def dithers(__: Image.Image, dice: Dice) -> Image.Image:
    """A grey picture of shaded areas, in dots of one or two pixels."""
    grey, size = _scene(dice), dice.pick((1, 1, 1, 2))
    grey = grey[::size, ::size]
    threshold = dice.pick((_random, _ordered, _screened))
    if dice.chance(0.25):
        white = np.asarray(Image.fromarray(np.rint(255 * grey).astype(np.uint8)).convert("1"))
    else:
        white = grey > threshold(dice, len(grey))
    drawn = white.repeat(size, 0).repeat(size, 1)
    return Image.fromarray(drawn.astype(np.uint8) * np.uint8(INK))


def _scene(dice: Dice) -> NDArray[np.float64]:
    """Grey levels, (128, 128): a ground and some areas before it, each of a smooth shade of its own."""
    grey = _shade(dice)
    for _ in range(dice.below(5)):
        area = Image.new("L", (SIDE, SIDE), PAPER)
        ink, radius, centre = ImageDraw.Draw(area), dice.by_factors(10, 60), anywhere(dice)
        if dice.chance(0.5):
            ink.ellipse(around(centre, radius, radius * dice.between(0.4, 1)), INK)
        else:
            angles = sorted(dice.between(0, 2 * math.pi) for _ in range(3 + dice.below(5)))
            ink.polygon([beside(centre, angle, radius * dice.between(0.5, 1)) for angle in angles], INK)
        grey = np.where(np.asarray(area) > 0, _shade(dice), grey)
    return grey.clip(0, 1)


def _shade(dice: Dice) -> NDArray[np.float64]:
    """A smooth shade over the sheet, from black to white at most; beyond, it is black or white for a stretch."""
    middle, spread = dice.between(-0.1, 1.1), dice.between(0, 1.2)
    return middle + spread * (field(dice, 2 + dice.below(6)) - 0.5)


def _random(dice: Dice, side: int) -> NDArray[np.float64]:
    return dice.field(side, side)


def _ordered(dice: Dice, side: int) -> NDArray[np.float64]:
    """A Bayer matrix of 2x2, 4x4 or 8x8 thresholds, over and over (Bayer, Proc. IEEE ICC 26, 11, 1973)."""
    matrix = np.zeros((1, 1))
    for _ in range(1 + dice.below(3)):
        matrix = np.block([[4 * matrix, 4 * matrix + 2], [4 * matrix + 3, 4 * matrix + 1]])
    count = -(-side // len(matrix))
    return np.tile((matrix + 0.5) / matrix.size, (count, count))[:side, :side]


def _screened(dice: Dice, side: int) -> NDArray[np.float64]:
    """A screen of dots at an angle, which grow as it gets lighter."""
    down, right = np.indices((side, side))
    angle, pitch = dice.pick((0.0, math.pi / 4, dice.between(0, math.pi))), dice.between(3, 9)
    across = right * math.cos(angle) + down * math.sin(angle)
    along = down * math.cos(angle) - right * math.sin(angle)
    waves = np.cos(2 * math.pi * across / pitch + dice.between(0, 6)) * np.cos(2 * math.pi * along / pitch)
    return np.asarray(0.5 - 0.5 * waves)
