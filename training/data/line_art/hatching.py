"""Areas filled with parallel lines, straight, bent, crossed or broken, each at its own pitch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.dice import Dice
from training.data.pen import INK, PAPER, SIDE, Point, anywhere, beside, field, oval, rectangle, spline


def hatching(__: Image.Image, dice: Dice) -> Image.Image:
    """Areas filled with parallel lines, straight, bent, crossed or broken, each at its own pitch."""
    sheet = np.zeros((SIDE, SIDE), bool)
    if dice.chance(0.4):
        sheet |= _hatch(dice)
    for _ in range(2 + dice.below(7)):
        radius = dice.by_factors(12, 80)
        shape = _shape(dice, anywhere(dice), radius)
        inside = _filled(shape)
        sheet = np.where(inside, _hatch(dice), sheet)
        width = dice.below(4)
        if width:
            line = Image.new("L", (SIDE, SIDE), PAPER)
            ImageDraw.Draw(line).line([*shape, *shape[:2]], INK, width, joint="curve")
            sheet |= np.asarray(line) > 0
    return Image.fromarray(sheet.astype(np.uint8) * np.uint8(INK))


def _shape(dice: Dice, centre: Point, radius: float) -> list[Point]:
    kind = dice.below(4)
    if kind == 0:
        return oval(centre, radius, dice.between(0.4, 1), dice.between(0, math.pi))
    if kind == 1:
        x, y = centre
        down = radius * dice.between(0.2, 1)
        return rectangle(x - radius, y - down, x + radius, y + down)
    angles = sorted(dice.between(0, 2 * math.pi) for _ in range(3 + dice.below(6)))
    corners = [beside(centre, angle, radius * dice.between(0.5, 1)) for angle in angles]
    return corners if kind == 2 else spline([*corners, *corners[:3]])


def _filled(shape: Sequence[Point]) -> NDArray[np.bool_]:
    sheet = Image.new("L", (SIDE, SIDE), PAPER)
    ImageDraw.Draw(sheet).polygon(list(shape), INK)
    return np.asarray(sheet) > 0


def _hatch(dice: Dice) -> NDArray[np.bool_]:
    """Lines over a whole sheet, (128, 128); one family of them, or two that cross."""
    down, right = np.indices((SIDE, SIDE))
    angle = dice.pick((0.0, math.pi / 2, math.pi / 4, -math.pi / 4, dice.between(0, math.pi), dice.between(0, math.pi)))
    width = dice.between(1, 4)
    pitch = width + dice.by_factors(1.5, 12)
    if dice.chance(0.5):
        width, pitch = float(round(width)), float(round(pitch))
    bend = pitch * dice.between(0, 2) * field(dice, 3 + dice.below(4)) if dice.chance(0.3) else 0.0
    # Engravers draw broader lines where it is darker.
    swell = 0.6 * width * (field(dice, 3) - 0.5) if dice.chance(0.25) else 0.0
    across = right * math.cos(angle) + down * math.sin(angle) + dice.between(0, pitch) + bend
    along = down * math.cos(angle) - right * math.sin(angle)
    lines = across % pitch < width + swell
    if dice.chance(0.2):
        # Broken lines: dashes, or short strokes in brick pattern.
        dash = pitch * dice.between(1, 4)
        lines &= (along + dash / 2 * (across // pitch % 2)) % dash < dash * dice.between(0.4, 0.85)
    if dice.chance(0.3):
        other = along if dice.chance(0.7) else along * math.cos(0.9) + across * math.sin(0.9)
        lines |= other % (pitch * dice.pick((1.0, 1.0, 1.5, 2.0))) < width + swell
    return np.asarray(lines)
