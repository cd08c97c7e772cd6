"""What draws on sheets of 128x128 pixels: points, strokes, and a pen that draws outlines coarsely or smoothly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.dice import Dice

SIDE = 128
INK, PAPER = 255, 0
# A pixel of a smooth drawing is ink from this share of it: lines of one pixel must not vanish between two rows.
COVERED = 0.45

Point = tuple[float, float]


def anywhere(dice: Dice) -> Point:
    return dice.between(0, SIDE), dice.between(0, SIDE)


def beside(point: Point, angle: float, distance: float) -> Point:
    return point[0] + distance * math.cos(angle), point[1] + distance * math.sin(angle)


def around(centre: Point, across: float, down: float) -> tuple[float, float, float, float]:
    """The box around an ellipse."""
    return centre[0] - across, centre[1] - down, centre[0] + across, centre[1] + down


def stroke(ink: ImageDraw.ImageDraw, points: Sequence[Point], width: float) -> None:
    """A line through points with round ends and bends."""
    ink.line(points, INK, max(1, round(width)), joint="curve")
    if width >= 3:
        for point in (points[0], points[-1]):
            ink.ellipse(around(point, width / 2 - 0.5, width / 2 - 0.5), INK)


def wandering(dice: Dice, start: Point, step: float) -> list[Point]:
    """A smooth curve: a quadratic B-spline through a walk of which the direction changes little by little."""
    angle, walk = dice.between(0, 2 * math.pi), [start]
    for _ in range(2 + dice.below(6)):
        walk.append(beside(walk[-1], angle, step * dice.between(0.5, 1.5)))
        angle += dice.between(-1.6, 1.6)
    return spline(walk)


def field(dice: Dice, cells: int) -> NDArray[np.float64]:
    """A smooth random field over the sheet, about in [0, 1]."""
    coarse = Image.fromarray(dice.field(cells, cells).astype(np.float32))
    return np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float64)


def spline(walk: Sequence[Point]) -> list[Point]:
    """A quadratic B-spline between the ends of a walk of at least three points."""
    corners = np.array(walk)
    middles = (corners[1:] + corners[:-1]) / 2
    along = np.linspace(0, 1, 9)[:-1, None]
    bends = [
        (1 - along) ** 2 * one + 2 * along * (1 - along) * corner + along**2 * other
        for one, corner, other in zip(middles, corners[1:-1], middles[1:], strict=False)
    ]
    return [(float(x), float(y)) for x, y in np.concatenate([corners[:1], *bends, corners[-1:]])]


def paced(points: Sequence[Point], pace: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points (N, 2) at equal distances along a line, and the unit vectors (N, 2) along it there."""
    corners = np.array(points)
    run = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    at = np.arange(0, run[-1], pace)
    places = np.stack([np.interp(at, run, corners[:, axis]) for axis in (0, 1)], axis=1)
    ahead = np.stack([np.interp(at + 0.5, run, corners[:, axis]) for axis in (0, 1)], axis=1) - places
    length = np.hypot(*ahead.T)[:, None]
    return places, np.divide(ahead, length, out=np.zeros_like(ahead), where=length > 0)


class Pen:
    """Draws on a sheet of its own, either in whole pixels or four times as large, which is then made small.

    Args:
        dice: choose which.
        turned: by how many degrees all is turned about the middle.
    """

    def __init__(self, dice: Dice, turned: float = 0.0) -> None:
        self.scale = dice.pick((1, 1, 4))
        self._sheet = Image.new("L", (SIDE * self.scale,) * 2, PAPER)
        self._ink = ImageDraw.Draw(self._sheet)
        angle = math.radians(turned)
        self._turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])

    def _at(self, points: Iterable[Point]) -> list[Point]:
        middle = SIDE / 2
        turned = (np.array(list(points), float) - middle) @ self._turn + middle
        return [(x, y) for x, y in (self.scale * (turned + 0.5) - 0.5).tolist()]

    def line(self, points: Iterable[Point], width: float = 1, fill: int = INK) -> None:
        self._ink.line(self._at(points), fill, max(1, round(width * self.scale)), joint="curve")

    def area(self, points: Iterable[Point], fill: int = INK) -> None:
        self._ink.polygon(self._at(points), fill)

    def outline(self, points: Sequence[Point], width: float = 1, fill: int = INK) -> None:
        """A closed line."""
        self.line([*points, *points[:2]], width, fill)

    def disc(self, centre: Point, radius: float, flat: float = 1.0, tilt: float = 0.0, fill: int = INK) -> None:
        self.area(oval(centre, radius, flat, tilt), fill)

    def stamp(self, ink: NDArray[np.bool_]) -> None:
        """Add pixels (128, 128)."""
        mask = Image.fromarray(np.repeat(np.repeat(ink, self.scale, 0), self.scale, 1).astype(np.uint8) * np.uint8(255))
        self._sheet.paste(INK, (0, 0), mask)

    def drawn(self) -> Image.Image:
        """The sheet, 128x128."""
        if self.scale == 1:
            return self._sheet
        small = np.asarray(self._sheet.reduce(self.scale))
        return Image.fromarray((small > 255 * COVERED).astype(np.uint8) * np.uint8(INK))


def oval(centre: Point, radius: float, flat: float = 1.0, tilt: float = 0.0) -> list[Point]:
    """Points around an ellipse, of which the smaller radius is `flat` of the larger."""
    turns = np.linspace(0, 2 * math.pi, max(8, min(60, round(4 * radius))), endpoint=False)
    across, down = radius * np.cos(turns), flat * radius * np.sin(turns)
    x = centre[0] + across * math.cos(tilt) - down * math.sin(tilt)
    y = centre[1] + across * math.sin(tilt) + down * math.cos(tilt)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def arc(centre: Point, radius: float, start: float, stop: float) -> list[Point]:
    """Points from one angle to another, in degrees, clockwise from the right."""
    turns = np.radians(np.linspace(start, stop, max(6, min(60, round(2 * radius)))))
    x, y = centre[0] + radius * np.cos(turns), centre[1] + radius * np.sin(turns)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def rectangle(left: float, top: float, right: float, bottom: float) -> list[Point]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]
