"""Line art: sheet music, circuit diagrams, maps, tables and hatching, in lines of one to four pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.dice import Dice
from training.data.pen import (
    INK,
    PAPER,
    SIDE,
    Pen,
    Point,
    anywhere,
    arc,
    beside,
    oval,
    paced,
    rectangle,
    spline,
    wandering,
)

# Lines through the places of a part, of which the leads begin at (0, 0) and end at (1, 0).
Part = Sequence[Sequence[Point]]


class Script:
    """Letters that no one reads: a dozen signs of a few strokes each, in which words are written.

    Args:
        dice: choose the signs.
        height: of a sign, in pixels.
    """

    def __init__(self, dice: Dice, height: float) -> None:
        self.height, self.pace = height, height * dice.between(0.62, 0.85)
        self.width = max(1, round(height * dice.between(0.07, 0.17)))
        self._signs = [_sign(dice) for _ in range(12)]

    def write(self, pen: Pen, dice: Dice, start: Point, count: int, fill: int = INK) -> float:
        """Write a word with its upper left corner at `start`; return where it ends."""
        left, top = start
        across, down = 0.7 * self.pace, self.height
        for _ in range(count):
            for points in dice.pick(self._signs):
                pen.line([(left + across * x, top + down * y) for x, y in points], self.width, fill)
            left += self.pace
        return left


def _sign(dice: Dice) -> list[list[Point]]:
    """One to three strokes between places of a grid, straight or curved."""
    strokes = []
    for _ in range(1 + dice.below(3)):
        walk = [(dice.below(3) / 2, dice.below(4) / 3) for _ in range(2 + dice.below(3))]
        strokes.append(spline(walk) if len(walk) > 2 and dice.chance(0.5) else walk)
    return strokes


def staves(__: Image.Image, dice: Dice) -> Image.Image:
    """Sheet music: staves with clefs, notes, beams, rests, slurs and bars."""
    pen = Pen(dice, dice.pick((0, 0, 0, 0, dice.between(-4, 4), dice.between(-4, 4), 90)))
    gap = dice.by_factors(4, 13)
    gap = round(gap) if dice.chance(0.7) else gap
    thin = 1 if gap < 8 or dice.chance(0.5) else 2
    words = Script(dice, max(5.0, 1.4 * gap))
    top = dice.between(-4, 1) * gap
    while top < SIDE:
        _staff(pen, dice, top, gap, thin)
        space = gap * dice.between(4, 9)
        if dice.chance(0.3):
            left, line = dice.between(-5, 20), top + 4 * gap + space - 1.6 * gap
            while left < SIDE:
                left = words.write(pen, dice, (left, line), 1 + dice.below(5)) + dice.between(1, 3) * gap
        top += 4 * gap + space
    return pen.drawn()


def _staff(pen: Pen, dice: Dice, top: float, gap: float, thin: int) -> None:
    """Five lines and what is on them; `gap` is from line to line."""
    left = dice.pick((-20.0, -20.0, dice.between(0, 40)))
    right = dice.pick((SIDE + 20.0, SIDE + 20.0, SIDE - dice.between(0, 30)))
    for line in range(5):
        pen.line([(left, top + line * gap), (right, top + line * gap)], thin)
    _bar(pen, left, top, gap, thin)
    x = left + gap
    if dice.chance(0.7):
        _clef(pen, dice, (x + 1.2 * gap, top), gap, thin)
        x += 3.2 * gap
    for _ in range(dice.below(4)):
        _accidental(pen, dice, (x, top + dice.below(8) * gap / 2), gap, thin)
        x += 1.3 * gap
    while x < right - 2 * gap:
        kind = dice.below(10)
        if kind < 5:
            x = _notes(pen, dice, (x, top), gap, thin, 1)
        elif kind < 7:
            x = _notes(pen, dice, (x, top), gap, thin, 2 + dice.below(3))
        elif kind == 7:
            _rest(pen, dice, (x + gap, top), gap, thin)
            x += 3 * gap
        elif kind == 8:
            _bar(pen, x + 0.5 * gap, top, gap, dice.pick((thin, thin, 2 * thin + 1)))
            x += 2 * gap
        else:
            below = top + gap * dice.pick((-1.5, 5.5))
            bend = gap * dice.between(1, 2) * (1 if below > top else -1)
            long = gap * dice.between(4, 9)
            pen.line(spline([(x, below), (x + long / 2, below + bend), (x + long, below)]), dice.pick((thin, thin + 1)))


def _bar(pen: Pen, x: float, top: float, gap: float, width: float) -> None:
    pen.line([(x, top), (x, top + 4 * gap)], width)


def _clef(pen: Pen, dice: Dice, place: Point, gap: float, thin: int) -> None:
    """A spiral with a stem that loops above and ends in a dot, or a bow with two dots."""
    x, top = place
    heavy = max(thin, round(gap / dice.between(3, 5)))
    if dice.chance(0.6):
        turns = np.linspace(-0.5 * math.pi, 2.6 * math.pi, 40)
        radius = gap * np.linspace(0.45, 1.25, 40)
        spiral = list(
            zip((x + radius * np.cos(turns)).tolist(), (top + 3 * gap - radius * np.sin(turns)).tolist(), strict=True)
        )
        loop = [(x - 0.9 * gap, top + 1.6 * gap), (x + 0.9 * gap, top), (x + 0.4 * gap, top - 1.6 * gap)]
        stem = [(x - 0.3 * gap, top), (x + 0.3 * gap, top + 5 * gap), (x - 0.6 * gap, top + 5.4 * gap)]
        pen.line(spiral, heavy)
        pen.line(spline([spiral[-1], *loop, *stem]), heavy)
        pen.disc((x - 0.6 * gap, top + 5.2 * gap), 0.35 * gap)
    else:
        pen.disc((x - 0.7 * gap, top + gap), 0.4 * gap)
        bow = [(x - gap, top + 0.6 * gap), (x, top - 0.4 * gap), (x + 1.2 * gap, top + gap), (x - gap, top + 3.2 * gap)]
        pen.line(spline(bow), heavy)
        for down in (0.5, 1.5):
            pen.disc((x + 1.5 * gap, top + down * gap), max(0.7, 0.2 * gap))


def _accidental(pen: Pen, dice: Dice, place: Point, gap: float, thin: int) -> None:
    """A sharp, a flat or a natural."""
    x, y = place
    kind = dice.below(3)
    heavy = max(1.0, 0.3 * gap)
    if kind == 0:
        for side in (-0.25, 0.25):
            pen.line([(x + side * gap, y - 1.2 * gap), (x + side * gap, y + 1.2 * gap)], thin)
            pen.line(
                [(x - 0.55 * gap, y + (2 * side + 0.15) * gap), (x + 0.55 * gap, y + (2 * side - 0.15) * gap)], heavy
            )
    elif kind == 1:
        pen.line([(x - 0.3 * gap, y - 1.8 * gap), (x - 0.3 * gap, y + 0.6 * gap)], thin)
        pen.line(
            spline([(x - 0.3 * gap, y - 0.3 * gap), (x + 0.7 * gap, y - 0.6 * gap), (x - 0.3 * gap, y + 0.6 * gap)]),
            max(thin, round(0.2 * gap)),
        )
    else:
        for side in (-0.3, 0.3):
            pen.line([(x + side * gap, y - (0.6 - side * 2) * gap), (x + side * gap, y + (0.6 + side * 2) * gap)], thin)
            pen.line(
                [(x - 0.3 * gap, y + (side * 1.6 + 0.1) * gap), (x + 0.3 * gap, y + (side * 1.6 - 0.1) * gap)], heavy
            )


def _notes(pen: Pen, dice: Dice, place: Point, gap: float, thin: int, count: int) -> float:
    """A note, or several under a beam; return where they end."""
    x, top = place
    pace = gap * dice.between(1.7, 3.2)
    first = dice.below(15) - 3
    steps = [first, *(min(12, max(-4, first + dice.below(7) - 3)) for _ in range(count - 1))]
    up = -1 if sum(steps) / count < 4 else 1
    hollow = count == 1 and dice.chance(0.3)
    heads = [(x + pace * (0.5 + number), top + (4 - step / 2) * gap) for number, step in enumerate(steps)]
    far = (min if up < 0 else max)(y for _, y in heads) + up * gap * dice.between(2.6, 3.6)
    slope = 0.0 if count == 1 else gap * dice.between(-0.35, 0.35)
    ends = [far + slope * (number - (count - 1) / 2) for number in range(count)]
    sides = [centre[0] - up * 0.55 * gap for centre in heads]
    for centre, side, end, step in zip(heads, sides, ends, steps, strict=True):
        _head(pen, centre, gap, hollow, thin)
        if not hollow or dice.chance(0.7):
            pen.line([(side, centre[1]), (side, end)], thin)
        # Ledger lines.
        for line in [*range(-2, step - 1, -2), *range(10, step + 1, 2)]:
            y = top + (4 - line / 2) * gap
            pen.line([(centre[0] - gap, y), (centre[0] + gap, y)], thin)
        if dice.chance(0.1):
            pen.disc((centre[0] + 1.1 * gap, centre[1] - 0.25 * gap), max(0.7, 0.18 * gap))
    if count > 1:
        for number in range(1 + dice.below(3)):
            down = -up * 0.75 * gap * number
            (left, right), (start, stop) = (sides[0], sides[-1]), (ends[0] + down, ends[-1] + down)
            thick = -up * 0.5 * gap
            pen.area([(left, start), (right, stop), (right, stop + thick), (left, start + thick)])
    elif not hollow and dice.chance(0.4):
        side, end = sides[0], ends[0]
        flag = [(side, end), (side + 0.9 * gap, end - up * 1.1 * gap), (side + 0.7 * gap, end - up * 2.2 * gap)]
        pen.line(spline(flag), max(thin, round(0.25 * gap)))
    if dice.chance(0.12):
        _accidental(pen, dice, (heads[0][0] - 1.2 * gap, heads[0][1]), gap, thin)
    return x + pace * count


def _head(pen: Pen, centre: Point, gap: float, hollow: bool, thin: int) -> None:
    pen.disc(centre, 0.66 * gap, 0.7, -0.35)
    if hollow:
        pen.disc(centre, 0.66 * gap - thin, 0.5, -0.6, fill=PAPER)


def _rest(pen: Pen, dice: Dice, place: Point, gap: float, thin: int) -> None:
    """Of a bar, of a beat, or shorter."""
    x, top = place
    kind = dice.below(3)
    if kind == 0:
        y = top + dice.pick((1.0, 1.5)) * gap
        pen.area(rectangle(x - 0.6 * gap, y, x + 0.6 * gap, y + 0.5 * gap))
    elif kind == 1:
        zigzag = [(-0.3, 0.6), (0.35, 1.4), (-0.3, 2.0), (0.4, 2.8), (-0.2, 2.6), (0.1, 3.3)]
        pen.line([(x + across * gap, top + down * gap) for across, down in zigzag], max(thin, round(0.3 * gap)))
    else:
        pen.disc((x - 0.4 * gap, top + 1.3 * gap), 0.3 * gap)
        hook = [(-0.4, 1.4), (0.2, 1.6), (0.5, 1.1), (0.0, 3.0)]
        pen.line([(x + across * gap, top + down * gap) for across, down in hook], thin)


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


def field(dice: Dice, cells: int) -> NDArray[np.float64]:
    """A smooth random field over the sheet, about in [0, 1]."""
    coarse = Image.fromarray(dice.field(cells, cells).astype(np.float32))
    return np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float64)


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


def tables(__: Image.Image, dice: Dice) -> Image.Image:
    """Tables and forms: rules of several widths, words, figures, leaders of dots, boxes to tick, filled heads."""
    pen = Pen(dice, dice.pick((0, 0, 0, dice.between(-3, 3))))
    size = dice.between(5, 13)
    words, bold = Script(dice, size), Script(dice, size)
    bold.width += 1
    high = size + dice.between(4, 12)
    left, top = dice.between(-40, 15), dice.between(-30, 15)
    columns = [left]
    most = dice.pick((3, 5, 9, 9))
    while columns[-1] < SIDE and len(columns) < most:
        columns.append(columns[-1] + dice.by_factors(14, 70))
    right, rows = columns[-1], 4 + dice.below(16)
    frame, head, between, upright = dice.below(4), 1 + dice.below(3), dice.below(3), dice.below(3)
    double = dice.chance(0.25)
    for row in range(rows + 1):
        y = top + row * high
        width = frame if row in (0, rows) else head if row == 1 else between
        if width:
            pen.line([(left, y), (right, y)], width)
            if double and row < 2:
                pen.line([(left, y + width + 2), (right, y + width + 2)], width)
    for number, x in enumerate(columns):
        width = frame if number in (0, len(columns) - 1) else upright
        if width:
            pen.line([(x, top), (x, top + rows * high)], width)
    reverse = dice.chance(0.2)
    if reverse:
        pen.area(rectangle(left, top, right, top + high))
    kinds = [dice.below(6) for _ in columns]
    for row in range(rows):
        fill = PAPER if reverse and row == 0 else INK
        for kind, near, far in zip(kinds, columns, columns[1:], strict=False):
            script, corner = (bold if row == 0 else words), (near + 3, top + row * high + (high - size) / 2)
            _cell(pen, dice, script, corner, far - near - 6, 0 if row == 0 else kind, fill)
    return pen.drawn()


def _cell(pen: Pen, dice: Dice, script: Script, corner: Point, wide: float, kind: int, fill: int) -> None:
    """What is in a cell: words, a figure to the right, dots, a box, a stroke or nothing."""
    left, top = corner
    most, bottom = int(wide / script.pace), top + script.height
    if kind <= 1:
        end = left
        while (room := int((left + wide - end) / script.pace)) > 0 and not (end > left and dice.chance(0.4)):
            end = script.write(pen, dice, (end, top), min(room, 1 + dice.below(8)), fill) + script.pace
        if kind == 1:
            # Leaders up to the next column.
            pitch = dice.pick((3, 4, 6))
            for x in np.arange(end, left + wide, pitch).tolist():
                pen.line([(x, bottom - 1), (x + 0.6, bottom - 1)], 1, fill)
    elif kind == 2:
        count = min(most, 1 + dice.below(6))
        script.write(pen, dice, (left + wide - count * script.pace, top), count, fill)
    elif kind == 3:
        pen.outline(rectangle(left, top, left + script.height, bottom), script.width, fill)
        if dice.chance(0.4):
            pen.line([(left, top), (left + script.height, bottom)], script.width, fill)
            pen.line([(left + script.height, top), (left, bottom)], script.width, fill)
    elif kind == 4 and wide > 6:
        y = bottom if dice.chance(0.5) else (top + bottom) / 2
        pen.line([(left, y), (left + wide * dice.between(0.3, 1), y)], script.width, fill)


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
