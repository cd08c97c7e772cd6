"""Maps: contours or a coast, rivers, roads, railways, dashed borders, houses, signs and names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from training.data.dice import Dice
from training.data.line_art.script import Script
from training.data.pen import INK, PAPER, Pen, Point, anywhere, field, oval, paced, rectangle, wandering


def maps(__: Image.Image, dice: Dice) -> Image.Image:
    """Maps: contours or a coast, rivers, roads between two lines, railways, dashed borders, houses, signs, names."""
    pen = Pen(dice, dice.between(0, 360))
    if dice.chance(0.75):
        pen.stamp(_contours(dice))
    for _ in range(dice.below(3)):
        _river(pen, dice)
    for _ in range(dice.below(3)):
        _dashes(pen, dice)
    roads = [wandering(dice, anywhere(dice), 35) for _ in range(dice.below(4))]
    edge, broad = 1 + dice.below(2), dice.between(3, 8)
    # What is between the lines is cleared last, so that crossings are open.
    for points in roads:
        pen.line(points, broad + 2 * edge)
    for points in roads:
        pen.line(points, broad, PAPER)
    if dice.chance(0.3):
        _railway(pen, dice)
    if dice.chance(0.5):
        _houses(pen, dice)
    words = Script(dice, dice.between(5, 12))
    for _ in range(dice.below(12)):
        _landmark(pen, dice, anywhere(dice), dice.between(1.5, 5))
    for _ in range(dice.below(4)):
        words.write(pen, dice, anywhere(dice), 2 + dice.below(6))
    return pen.drawn()


def _contours(dice: Dice) -> NDArray[np.bool_]:
    """Lines of equal height, each fifth of them broader, or one alone: a coast, with lines along it in the sea."""
    height = field(dice, round(dice.by_factors(3, 9)))
    if dice.chance(0.5):
        height = height + dice.between(0.05, 0.2) * field(dice, 16)
    width = dice.pick((1.0, 1.0, 1.3, 2.0, 3.0))
    levels = height * dice.by_factors(3, 14)
    steep = np.hypot(*np.gradient(levels)).clip(1e-3)
    away = abs(levels - np.rint(levels)) / steep
    if dice.chance(0.3):
        rings = 1 + dice.below(4)
        steep = np.hypot(*np.gradient(height)).clip(1e-3)
        out = (height - np.median(height)) / steep
        return np.any([abs(out - 5 * ring * width) < (width + (ring == 0)) / 2 for ring in range(rings)], axis=0)
    thick = np.where((np.rint(levels) % 5 == 0) & dice.chance(0.6), width + 1, width)
    return np.asarray(away < thick / 2)


def _river(pen: Pen, dice: Dice) -> None:
    """A line that grows broader, as two banks or filled."""
    points = wandering(dice, anywhere(dice), 30)
    last = dice.between(1, 7)
    open_, bank = last > 4 and dice.chance(0.5), 1
    for grown, fill in ((0.0, INK), *([(-2.0 * bank, PAPER)] if open_ else [])):
        for number in range(len(points) - 1):
            width = 1 + last * number / len(points) + grown
            if width >= 1:
                pen.line(points[number : number + 2], width, fill)


def _dashes(pen: Pen, dice: Dice) -> None:
    """A border: dashes, or dashes and dots in turn."""
    points = wandering(dice, anywhere(dice), 35)
    width, dash = dice.pick((1, 1, 2, 3)), dice.between(2, 9)
    places, ahead = paced(points, dash + width + dice.between(1.5, 6))
    dotted = dice.chance(0.4)
    for number, (place, step) in enumerate(zip(places, ahead, strict=True)):
        if dotted and number % 2:
            pen.disc((float(place[0] + step[0] * dash / 2), float(place[1] + step[1] * dash / 2)), width / 2 + 0.3)
        else:
            pen.line([(float(x), float(y)) for x, y in (place, place + step * dash)], width)


def _railway(pen: Pen, dice: Dice) -> None:
    """A line and sleepers across it."""
    points, half = wandering(dice, anywhere(dice), 35), dice.between(1.5, 4)
    pen.line(points, dice.pick((1, 1, 2)))
    for place, step in zip(*paced(points, dice.between(4, 9)), strict=True):
        side = half * np.array([-step[1], step[0]])
        pen.line([(float(x), float(y)) for x, y in (place - side, place + side)])


def _houses(pen: Pen, dice: Dice) -> None:
    """Blocks of a town, filled or in outline, in uneven rows."""
    pitch, size = dice.between(7, 20), dice.between(0.4, 0.8)
    left, top = anywhere(dice)
    filled = dice.chance(0.6)
    for row in range(1 + dice.below(5)):
        for column in range(1 + dice.below(6)):
            x, y = left + column * pitch + dice.between(-1, 1), top + row * pitch + dice.between(-1, 1)
            frame = rectangle(x, y, x + pitch * size * dice.between(0.6, 1), y + pitch * size * dice.between(0.6, 1))
            if filled:
                pen.area(frame)
            else:
                pen.outline(frame)


def _landmark(pen: Pen, dice: Dice, place: Point, size: float) -> None:
    """A small sign: dot, ring, triangle, square, cross or tree."""
    x, y = place
    kind = dice.below(6)
    if kind == 0:
        pen.disc(place, size / 2)
    elif kind == 1:
        pen.outline(oval(place, size))
    elif kind == 2:
        peak = [(x, y - size), (x + size, y + size), (x - size, y + size)]
        (pen.area if dice.chance(0.5) else pen.outline)(peak)
    elif kind == 3:
        (pen.area if dice.chance(0.5) else pen.outline)(rectangle(x - size, y - size, x + size, y + size))
    elif kind == 4:
        pen.line([(x - size, y), (x + size, y)])
        pen.line([(x, y - size), (x, y + size)])
    else:
        pen.outline(oval((x, y - size), 0.8 * size))
        pen.line([(x, y), (x, y + size)])
