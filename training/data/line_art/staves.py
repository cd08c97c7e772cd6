"""Sheet music: staves with clefs, notes under beams or alone, accidentals, rests, slurs and bars."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from training.data.dice import Dice
from training.data.line_art.script import Script
from training.data.pen import PAPER, SIDE, Pen, Point, rectangle, spline


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
