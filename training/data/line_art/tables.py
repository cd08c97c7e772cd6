"""Tables and forms: rules of several widths, words, figures, leaders of dots, boxes to tick."""

from __future__ import annotations

import numpy as np
from PIL import Image

from training.data.dice import Dice
from training.data.line_art.script import Script
from training.data.pen import INK, PAPER, SIDE, Pen, Point, rectangle


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
