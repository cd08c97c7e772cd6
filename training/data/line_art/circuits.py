"""Circuit diagrams: wires on a grid, parts in them, dots where they join, chips, gates and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from training.data.dice import Dice
from training.data.line_art.script import Script
from training.data.pen import PAPER, SIDE, Pen, Point, anywhere, arc, oval, rectangle, spline

# Lines through the places of a part, of which the leads begin at (0, 0) and end at (1, 0).
Part = Sequence[Sequence[Point]]


def circuits(__: Image.Image, dice: Dice) -> Image.Image:
    """Circuit diagrams: wires on a grid, parts within them, dots where they join, chips, gates and labels."""
    pen = Pen(dice, dice.pick((0, 0, 0, dice.between(-3, 3))))
    pitch, width = dice.between(16, 44), 1 + dice.below(3)
    reach = round(SIDE / pitch) + 2
    shift = (dice.between(-pitch, 0), dice.between(-pitch, 0))
    wired = dice.between(0.35, 0.75)
    degrees = np.zeros((reach + 1, reach + 1), int)
    words = Script(dice, dice.between(5, 11))

    def node(column: int, row: int) -> Point:
        return shift[0] + column * pitch, shift[1] + row * pitch

    for column in range(reach):
        for row in range(reach):
            for right, down in ((1, 0), (0, 1)):
                if not dice.chance(wired):
                    continue
                start, end = node(column, row), node(column + right, row + down)
                degrees[row, column] += 1
                degrees[row + down, column + right] += 1
                _part(pen, dice, start, end, width)
                if dice.chance(0.25):
                    across = (start[0] + end[0]) / 2 + pitch * dice.pick((-0.4, 0.15))
                    words.write(pen, dice, (across, (start[1] + end[1]) / 2 - pitch * 0.45), 1 + dice.below(3))
    dot = width + dice.between(0.6, 2.0)
    for row, column in np.argwhere(degrees > 0).tolist():
        place = node(column, row)
        if degrees[row, column] >= 3 and dice.chance(0.9):
            pen.disc(place, dot)
        elif degrees[row, column] == 1:
            if dice.chance(0.5):
                pen.disc(place, dot + 1)
                pen.disc(place, dot + 1 - width, fill=PAPER)
            else:
                _ground(pen, place, pitch, width)
    for _ in range(dice.below(3)):
        (_chip if dice.chance(0.4) else _gate)(pen, dice, anywhere(dice), pitch, width)
    return pen.drawn()


def _part(pen: Pen, dice: Dice, start: Point, end: Point, width: int) -> None:
    """A wire, with something in it or not."""
    along = np.subtract(end, start)
    length = float(np.hypot(*along))
    across = np.array([-along[1], along[0]])

    def at(points: Sequence[Point]) -> list[Point]:
        placed = np.array(start) + np.multiply.outer([x for x, _ in points], along)
        placed += np.multiply.outer([y for _, y in points], across)
        return [(x, y) for x, y in placed.tolist()]

    if dice.chance(0.4):
        pen.line([start, end], width)
        return
    kind, high = dice.below(8), dice.between(0.1, 0.2)
    for points in (PARTS[kind % len(PARTS)](high), _leads(kind)):
        for line in points:
            pen.line(at(line), width)
    if kind == DIODE:
        pen.area(at([(0.36, -high), (0.6, 0), (0.36, high)]))
    if kind == SOURCE:
        middle = at([(0.5, 0)])[0]
        pen.outline(oval(middle, 0.2 * length), width)
        for line in ([(0.42, 0.0), (0.58, 0.0)], [(0.5, -0.07), (0.5, 0.07)]):
            pen.line(at(line), width)


def _resistor(high: float) -> Part:
    peaks = [(0.26 + 0.08 * number, high * (-1) ** number) for number in range(7)]
    return [[(0.22, 0.0), *peaks, (0.78, 0.0)]]


def _box(high: float) -> Part:
    return [[*rectangle(0.22, -high, 0.78, high), (0.22, -high), (0.78, -high)]]


def _capacitor(high: float) -> Part:
    return [[(0.45, -1.4 * high), (0.45, 1.4 * high)], [(0.55, -1.4 * high), (0.55, 1.4 * high)]]


def _battery(high: float) -> Part:
    plates = zip((0.41, 0.47, 0.53, 0.59), (1.4, 0.7, 1.4, 0.7), strict=True)
    return [[(x, -size * high), (x, size * high)] for x, size in plates]


def _coil(_: float) -> Part:
    return [arc((0.29 + 0.14 * number, 0.0), 0.07, 180, 360) for number in range(4)]


def _switch(high: float) -> Part:
    return [[(0.3, 0.0), (0.68, -1.6 * high)], [(0.7, -0.02), (0.7, 0.02)]]


def _diode(high: float) -> Part:
    return [[(0.36, -high), (0.6, 0.0), (0.36, high), (0.36, -high)], [(0.62, -high), (0.62, high)]]


def _source(_: float) -> Part:
    return []


PARTS: tuple[Callable[[float], Part], ...] = (
    _resistor,
    _box,
    _capacitor,
    _battery,
    _coil,
    _switch,
    _diode,
    _source,
)
DIODE, SOURCE = PARTS.index(_diode), PARTS.index(_source)


def _leads(kind: int) -> Part:
    """The wire up to a part and behind it."""
    near, far = (
        (0.22, 0.78),
        (0.22, 0.78),
        (0.45, 0.55),
        (0.41, 0.59),
        (0.22, 0.78),
        (0.3, 0.7),
        (0.36, 0.62),
        (0.3, 0.7),
    )[kind]
    return [[(0.0, 0.0), (near, 0.0)], [(far, 0.0), (1.0, 0.0)]]


def _ground(pen: Pen, place: Point, pitch: float, width: int) -> None:
    x, y = place
    for number, half in enumerate((0.22, 0.14, 0.06)):
        down = y + number * (width + 2)
        pen.line([(x - half * pitch, down), (x + half * pitch, down)], width)


def _chip(pen: Pen, dice: Dice, place: Point, pitch: float, width: int) -> None:
    """A box with pins on two sides and a word in it."""
    pins, step = 2 + dice.below(4), max(2 * width + 2, pitch * dice.between(0.2, 0.4))
    wide, high = pitch * dice.between(0.8, 1.8), step * pins
    left, top = place
    frame = rectangle(left, top, left + wide, top + high)
    pen.area([(x, y) for x, y in rectangle(left - 3, top - 3, left + wide + 3, top + high + 3)], PAPER)
    pen.outline(frame, width)
    for pin in range(pins):
        y = top + step * (pin + 0.5)
        for side, outwards in ((left, -1), (left + wide, 1)):
            pen.line([(side, y), (side + outwards * pitch * 0.3, y)], width)
    Script(dice, max(5.0, 0.3 * pitch)).write(pen, dice, (left + 3 + width, top + high / 2 - 3), 2)


def _gate(pen: Pen, dice: Dice, place: Point, pitch: float, width: int) -> None:
    """A gate of logic, or an amplifier: two wires in, one out, and perhaps a ring that negates."""
    x, y = place
    size = pitch * dice.between(0.35, 0.6)
    kind = dice.below(3)
    if kind == 0:
        shape = [(x - size, y - size), (x + size, y), (x - size, y + size)]
    elif kind == 1:
        shape = [(x - size, y - size), *arc((x, y), size, -90, 90), (x - size, y + size)]
    else:
        shape = [*spline([(x - size, y - size), (x + 0.4 * size, y - size), (x + size, y)])]
        shape += [*spline([(x + size, y), (x + 0.4 * size, y + size), (x - size, y + size)])]
        shape += [*spline([(x - size, y + size), (x - 0.5 * size, y), (x - size, y - size)])]
    pen.area(shape, PAPER)
    pen.outline(shape, width)
    for side in (-0.5, 0.5):
        pen.line(
            [(x - size - pitch / 2, y + side * size), (x - size * dice.between(0.75, 1.0), y + side * size)], width
        )
    ring = 1.5 + width if dice.chance(0.5) else 0.0
    if ring:
        pen.outline(oval((x + size + ring, y), ring), width)
    pen.line([(x + size + 2 * ring, y), (x + size + pitch, y)], width)
