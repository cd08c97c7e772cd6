"""Words that no one reads, of made-up signs: labels of diagrams, names on maps, cells of tables."""

from __future__ import annotations

from training.data.dice import Dice
from training.data.pen import INK, Pen, Point, spline


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
