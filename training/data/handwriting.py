"""Lines of running hand that no one reads: joined letters by a pen whose width, pressure and ink vary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.pen import Point, paced, spline

# Letters as walks that a spline smooths: x to the right, y up from the baseline, in heights of a small letter.
_LETTERS: Sequence[Sequence[Point]] = (
    ((0, 0.1), (0.5, 0.5), (0.5, 1), (0.15, 0.9), (0.1, 0.1), (0.45, -0.1), (0.7, 0.2)),  # e
    ((0, 0), (0.5, 1.2), (0.5, 2.2), (0.15, 1.7), (0.15, 0.1), (0.4, -0.1), (0.6, 0.2)),  # l
    ((0, 0), (0.15, 1.1), (0.15, 0), (0.2, 0), (0.35, 1.1), (0.55, 1), (0.55, -0.1), (0.8, 0.2)),  # n
    ((0, 0.9), (0, -0.1), (0.35, 0), (0.5, 1.1), (0.5, -0.1), (0.75, 0.2)),  # u
    ((0.5, 0.9), (0.1, 1.1), (0, 0.2), (0.3, -0.2), (0.55, 1.1), (0.5, -0.1), (0.8, 0.2)),  # a
    ((0.4, 1.05), (0, 0.9), (0, 0), (0.45, -0.1), (0.55, 0.8), (0.3, 1.1), (0.8, 0.8)),  # o
    ((0.5, 0.9), (0.1, 1.1), (0, 0.2), (0.3, -0.2), (0.6, 2.1), (0.55, -0.1), (0.85, 0.2)),  # d
    ((0.5, 0.9), (0.1, 1.1), (0, 0.2), (0.3, 0), (0.5, 1.1), (0.45, -1), (0.1, -1), (0.2, -0.3), (0.8, 0.3)),  # g
    ((0, 0.2), (0.45, 1.9), (0.2, 2.2), (0.1, 0), (0.1, 0), (0.35, 1.2), (0.6, 0.9), (0.55, -0.1), (0.8, 0.2)),  # h
    ((0, 0.1), (0.3, 1.7), (0.3, -0.1), (0.5, 0), (0.65, 0.3)),  # t
    ((0, 0.1), (0.4, 1.2), (0.25, 0.7), (0.55, 0.2), (0.2, -0.1), (0.65, 0.1)),  # s
    ((0, 0.4), (0.2, 1.1), (0.1, -1.1), (0.2, 0.9), (0.6, 1.1), (0.55, 0), (0.2, 0), (0.8, 0.2)),  # p
    ((0, 0), (0.2, 1.2), (0.3, 0.9), (0.5, 1), (0.45, -0.1), (0.7, 0.2)),  # r
)
# The sheet is drawn so many times as large, and made small.
_FINER = 3
# Ink at its palest, of 255.
_PALEST = 70


@dataclass(frozen=True)
class Hand:
    """How somebody writes.

    Attributes:
        height: of a small letter, in pixels.
        slant: to the right, pixels for each pixel up.
        broad: width of a letter, in widths of the walks above.
        nib, spread: width of the thinnest stroke, and what is added across the pen's angle, in pixels.
        angle: of the pen, in radians.
        unrest: standard deviation of points of a letter, in heights.
        dry: how much paler strokes become where the pen runs dry, of 1.
    """

    height: float
    slant: float
    broad: float
    nib: float
    spread: float
    angle: float
    unrest: float
    dry: float


def hand(rng: Generator) -> Hand:
    height = math.exp(rng.uniform(math.log(8), math.log(42)))
    nib = max(1.1, height * rng.uniform(0.05, 0.1))
    return Hand(
        height=height,
        slant=rng.uniform(-0.1, 0.8),
        broad=rng.uniform(1.0, 1.9),
        nib=nib,
        spread=nib * rng.uniform(0.0, 1.1),
        angle=rng.uniform(0.3, 1.3),
        unrest=rng.uniform(0.03, 0.1),
        dry=rng.uniform(0.0, 0.8),
    )


def written(
    rng: Generator, shape: tuple[int, int], writer: Hand | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lines of words, (H, W): how much of each pixel strokes cover, and the same times how dark their ink is."""
    writer = writer or hand(rng)
    height, width = shape
    sheet = Image.new("L", (_FINER * width, _FINER * height))
    ink = ImageDraw.Draw(sheet)
    pitch = writer.height * rng.uniform(2.6, 4.2)
    slope = rng.uniform(-0.03, 0.03)
    top = rng.uniform(1.2, 2.5) * writer.height
    while top < height:
        left = rng.uniform(-0.05, 0.15) * width
        right = width * rng.uniform(0.7, 1.05)
        while left < right:
            start = (left, top + slope * left + rng.normal(0, 0.06) * writer.height)
            left = _word(ink, rng, writer, start) + writer.height * rng.uniform(0.5, 1.4)
        top += pitch
    fine = np.asarray(sheet)
    covered = Image.fromarray((fine > 0).astype(np.uint8) * np.uint8(255)).reduce(_FINER)
    inked = sheet.reduce(_FINER)
    return np.asarray(covered, np.float32) / np.float32(255), np.asarray(inked, np.float32) / np.float32(255)


def _word(ink: ImageDraw.ImageDraw, rng: Generator, writer: Hand, start: Point) -> float:
    """Write a word from a place on the baseline; return where it ends."""
    walk: list[Point] = []
    left = 0.0
    dots: list[Point] = []
    for _ in range(int(rng.integers(1, 10))):
        letter = np.array(_LETTERS[int(rng.integers(len(_LETTERS)))])
        letter = letter + rng.normal(0, writer.unrest, letter.shape)
        walk += [(left + float(x), float(y)) for x, y in letter]
        if rng.random() < 0.1:
            dots.append((left + 0.3, 1.7))
        left = walk[-1][0]
    _stroke(ink, rng, writer, start, spline(walk))
    for x, y in dots:
        _stroke(ink, rng, writer, start, [(x, y), (x + 0.08, y - 0.05)])
    if rng.random() < 0.12:
        # Crosses a letter, or underlines the word.
        y, far = float(rng.choice((1.3, 1.4, -0.5))), rng.uniform(0.3, 1.0) * left
        _stroke(ink, rng, writer, start, [(left - far, y), (left - far / 2, y + rng.normal(0, 0.1)), (left, y + 0.1)])
    return start[0] + left * writer.broad * writer.height


def _stroke(ink: ImageDraw.ImageDraw, rng: Generator, writer: Hand, start: Point, walk: Sequence[Point]) -> None:
    """Draw a smooth walk; the pen is as wide as its angle says, and presses less here and there."""
    points = [
        (start[0] + writer.height * (writer.broad * x + writer.slant * y), start[1] - writer.height * y)
        for x, y in walk
    ]
    at, along = paced(points, 0.8)
    count = len(at)
    across = np.abs(along[:, 0] * math.sin(writer.angle) + along[:, 1] * math.cos(writer.angle))
    press = _wander(rng, count, 25)
    widths = (writer.nib + writer.spread * across) * (0.75 + 0.5 * press)
    levels = 255 - (255 - _PALEST) * np.clip(writer.dry * (1.4 * _wander(rng, count, 40) - 0.2), 0, 1)
    for (x, y), wide, level in zip(_FINER * at, _FINER * widths / 2, levels, strict=True):
        ink.ellipse((x - wide, y - wide, x + wide, y + wide), int(level))


def _wander(rng: Generator, count: int, pace: float) -> NDArray[np.float64]:
    """Smooth random numbers in [0, 1] that change within so many steps, (count,)."""
    knots = rng.random(2 + int(count / pace))
    return np.interp(np.linspace(0, len(knots) - 1, count), np.arange(len(knots)), knots)
