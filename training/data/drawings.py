"""Black-and-white pictures of every kind but print, drawn by code: what a patch prior of general pictures learns from.

128x128 pixels. The kinds take turns, five of the fourteen being line art; half of the pictures are white on black, half
black on white. A picture depends only on a seed and its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from restore.data.dataset import Images, Split
from training.data.dice import Dice
from training.data.dithers import dithers
from training.data.line_art.circuits import circuits
from training.data.line_art.hatching import hatching
from training.data.line_art.maps import maps
from training.data.line_art.staves import staves
from training.data.line_art.tables import tables
from training.data.pen import INK, PAPER, SIDE, anywhere, around, beside, stroke, wandering

TRAINED, TESTED = 8_400, 140


def drawings(count: int, seed: int) -> Images:
    """This many pictures, (count, 128, 128), 0 or 255; the kinds in turn."""
    return np.stack([drawing(seed, number) for number in range(count)])


def drawing(seed: int, number: int) -> Images:
    """Draw a picture, (128, 128), 0 or 255.

    Args:
        seed, number: choose what is on it; its kind is the `number`-th of `KINDS`, which take turns.
    """
    dice = Dice(seed, number)
    kinds = tuple(KINDS.values())
    sheet = Image.new("L", (SIDE, SIDE), PAPER)
    drawn = kinds[number % len(kinds)](sheet, dice)
    # A whole round of kinds is white on black, the next one black on white.
    white = (np.asarray(drawn) > 127) ^ bool(number // len(kinds) % 2)
    return white.astype(np.uint8) * np.uint8(255)


def _polygons(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Filled polygons, rectangles and ellipses of several sizes; later ones may cut into earlier ones."""
    ink = ImageDraw.Draw(sheet)
    for number in range(1 + dice.below(8)):
        fill = PAPER if number and dice.chance(0.3) else INK
        radius, centre = dice.by_factors(3, 60), anywhere(dice)
        if dice.chance(0.4):
            flat = dice.between(0.4, 1.0)
            ink.ellipse(around(centre, radius, flat * radius), fill)
        else:
            corners = 3 + dice.below(6)
            angles = sorted(dice.between(0, 2 * math.pi) for _ in range(corners))
            near = dice.between(0.4, 1.0)
            ink.polygon([beside(centre, angle, radius * dice.between(near, 1)) for angle in angles], fill)
    return sheet


def _blobs(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Where a smooth random field is high: islands, lakes, cells."""
    cells = round(dice.by_factors(3, 20))
    levels = Image.fromarray(dice.field(cells, cells).astype(np.float32))
    smooth = np.asarray(levels.resize(sheet.size, Image.Resampling.BICUBIC))
    if dice.chance(0.5):
        # Two scales: a rough coast.
        finer = Image.fromarray(dice.field(3 * cells, 3 * cells).astype(np.float32))
        smooth = smooth + dice.between(0.1, 0.5) * np.asarray(finer.resize(sheet.size, Image.Resampling.BICUBIC))
    high = smooth > np.quantile(smooth, dice.between(0.35, 0.9))
    return Image.fromarray(high.astype(np.uint8) * np.uint8(INK))


def _silhouettes(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Closed smooth contours with limbs, and with holes in some: animals, leaves, tools, as masks show them."""
    ink = ImageDraw.Draw(sheet)
    for _ in range(1 + dice.below(3)):
        radius, centre = dice.by_factors(8, 55), anywhere(dice)
        waves = [(order, dice.between(0, 2 * math.pi), dice.between(0, 0.5) / order) for order in range(2, 9)]
        turns = np.linspace(0, 2 * math.pi, 90, endpoint=False)
        lengths = radius * (1 + sum(size * np.cos(order * turns + phase) for order, phase, size in waves))
        flat, tilt = dice.between(0.4, 1.0), dice.between(0, 2 * math.pi)
        right, down = lengths * np.cos(turns), flat * lengths * np.sin(turns)
        x = centre[0] + right * math.cos(tilt) - down * math.sin(tilt)
        y = centre[1] + right * math.sin(tilt) + down * math.cos(tilt)
        for _ in range(dice.below(5)):
            start = dice.below(len(turns))
            stroke(ink, wandering(dice, (x[start], y[start]), radius / 3), radius * dice.between(0.05, 0.35))
        ink.polygon(list(zip(x.tolist(), y.tolist(), strict=True)), INK)
        if dice.chance(0.25):
            ink.ellipse(around(centre, radius / 4, radius * dice.between(0.1, 0.3)), PAPER)
    return sheet


def _strokes(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Curved strokes of one width or several, as a pen or a brush makes them."""
    ink = ImageDraw.Draw(sheet)
    width, scale = dice.by_factors(1, 9), dice.by_factors(5, 30)
    for _ in range(1 + dice.below(round(300 / (scale + 5 * width)))):
        own = width if dice.chance(0.8) else dice.by_factors(1, 9)
        stroke(ink, wandering(dice, anywhere(dice), scale), own)
    return sheet


def _lines(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Line drawings with ruler and compass: figures, arcs, hatching, tables, charts."""
    ink = ImageDraw.Draw(sheet)
    width = 1 + dice.below(4)
    for _ in range(2 + dice.below(8)):
        centre, radius = anywhere(dice), dice.by_factors(6, 60)
        box = around(centre, radius, radius * dice.between(0.3, 1.0))
        figure = dice.below(6)
        if figure == 0:
            ink.line((centre, anywhere(dice)), INK, width)
        elif figure == 1:
            ink.rectangle(box, outline=INK, width=width)
        elif figure == 2:
            ink.ellipse(box, outline=INK, width=width)
        elif figure == 3:
            ink.arc(box, dice.between(0, 360), dice.between(0, 360), INK, width)
        elif figure == 4:
            corners = [beside(centre, dice.between(0, 2 * math.pi), radius) for _ in range(3 + dice.below(4))]
            ink.line([*corners, corners[0]], INK, width)
        else:
            pitch, slant = width + dice.by_factors(2, 16), dice.pick((0.0, 0.0, 1.0, -1.0))
            left, top, right, bottom = box
            for column in np.arange(left, right, pitch).tolist():
                ink.line(((column, top), (column + slant * (bottom - top), bottom)), INK, width)
            for row in np.arange(top, bottom, pitch).tolist() if dice.chance(0.5) else ():
                ink.line(((left, row), (right, row)), INK, width)
    return sheet


def _plans(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Floor plans: rooms within walls, doors with the arcs they swing through, windows, furniture."""
    ink = ImageDraw.Draw(sheet)
    wall = 1 + dice.below(6)
    edge = dice.between(-20, 12)
    _rooms(ink, dice, (edge, edge, SIDE - edge, SIDE - edge), wall)
    for _ in range(dice.below(6)):
        box = around(anywhere(dice), dice.by_factors(3, 14), dice.by_factors(3, 14))
        (ink.ellipse if dice.chance(0.3) else ink.rectangle)(box, outline=INK)
    return sheet


def _rooms(ink: ImageDraw.ImageDraw, dice: Dice, box: tuple[float, float, float, float], wall: int) -> None:
    """Walls around a box, and within it until its rooms are small."""
    left, top, right, bottom = box
    ink.rectangle(box, outline=INK, width=wall)
    across = right - left > bottom - top
    length = max(right - left, bottom - top)
    if length < 40 or (length < 90 and dice.chance(0.4)):
        return
    cut = round(dice.between(0.35, 0.65) * length + (left if across else top))
    halves = (
        ((left, top, cut, bottom), (cut, top, right, bottom))
        if across
        else ((left, top, right, cut), (left, cut, right, bottom))
    )
    for half in halves:
        _rooms(ink, dice, half, wall)
    # A door in the wall between them.
    door = min(dice.between(8, 16), min(right - left, bottom - top) - 2 * wall - 4)
    if door < 5 or dice.chance(0.15):
        return
    low, high = (top, bottom) if across else (left, right)
    at = dice.between(low + wall + 1, high - wall - 1 - door)
    ends = ((cut - wall, at), (cut + wall, at + door)) if across else ((at, cut - wall), (at + door, cut + wall))
    ink.rectangle((*ends[0], *ends[1]), fill=PAPER)
    if dice.chance(0.7):
        hinge = (cut, at) if across else (at, cut)
        start = dice.pick((0, 90)) if across else dice.pick((0, -90))
        ink.arc(around(hinge, door, door), start, start + 90, INK)
        ink.line((hinge, beside(hinge, math.radians(start if not across else start - 90 * (start == 90)), door)), INK)


def _modules(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Square modules, black or white at random, and the marks by which readers find codes; bars; chequers."""
    module = 3 + dice.below(8)
    count = SIDE // module + 2
    bits = dice.field(count, count) < dice.between(0.35, 0.65)
    manner = dice.below(6)
    if manner == 0:
        bits = np.repeat(bits[:1], count, axis=0)
    elif manner == 1:
        bits = np.add.outer(np.arange(count), np.arange(count)) % 2 == 0
    else:
        rings = np.maximum.outer(abs(np.arange(9) - 4), abs(np.arange(9) - 4))
        for _ in range(dice.below(4)):
            top, left = dice.below(max(1, count - 9)), dice.below(max(1, count - 9))
            size = bits[top : top + 9, left : left + 9].shape
            bits[top : top + 9, left : left + 9] = np.isin(rings, (0, 1, 3))[: size[0], : size[1]]
    if dice.chance(0.4):
        # A quiet zone.
        at = dice.below(max(1, count // 2))
        bits[:at] = False
        bits[:, : dice.below(max(1, count // 2))] = False
    if dice.chance(0.5):
        bits = bits.T
    top, left = dice.below(module), dice.below(module)
    white = np.kron(bits, np.ones((module, module), bool))[top : top + SIDE, left : left + SIDE]
    drawn = Image.fromarray(white.astype(np.uint8) * np.uint8(INK))
    # A code on a photographed sheet is seldom quite upright.
    return drawn.rotate(dice.between(-10, 10), Image.Resampling.BICUBIC) if dice.chance(0.2) else drawn


def _icons(sheet: Image.Image, dice: Dice) -> Image.Image:
    """Signs of a few simple parts that are added or cut out, of one size, in rows."""
    ink = ImageDraw.Draw(sheet)
    size = dice.pick((24, 32, 42, 64, 64, 128))
    for place in range((SIDE // size) ** 2):
        row, column = divmod(place, SIDE // size)
        left, top, unit = column * size, row * size, size / 24
        middle = (left + size / 2, top + size / 2)
        weight = max(1, round(unit * dice.between(1, 4)))
        for number in range(1 + dice.below(4)):
            fill = PAPER if number and dice.chance(0.4) else INK
            centre = middle if dice.chance(0.5) else beside(middle, dice.pick(range(8)) * math.pi / 4, unit * 5)
            radius = unit * dice.pick((2, 3, 4, 5, 6, 8, 10))
            box = around(centre, radius, radius * dice.pick((0.4, 0.7, 1.0, 1.0)))
            figure, solid = dice.below(5), number == 0 or dice.chance(0.5)
            if figure == 0:
                ink.ellipse(box, fill if solid else None, fill, weight)
            elif figure == 1:
                ink.rounded_rectangle(box, radius * dice.pick((0, 0.2, 0.4)), fill if solid else None, fill, weight)
            elif figure == 2:
                ink.regular_polygon((*centre, radius), dice.pick((3, 3, 4, 6)), 45 * dice.below(8), fill)
            elif figure == 3:
                ink.line(
                    (
                        beside(centre, turn := dice.below(8) * math.pi / 4, radius),
                        beside(centre, turn + math.pi, radius),
                    ),
                    fill,
                    weight,
                )
            else:
                ink.pieslice(box, start := 45 * dice.below(8), start + dice.pick((90, 180, 270)), fill)
    return sheet


KINDS: dict[str, Callable[[Image.Image, Dice], Image.Image]] = {
    "polygons": _polygons,
    "strokes": _strokes,
    "blobs": _blobs,
    "plans": _plans,
    "silhouettes": _silhouettes,
    "modules": _modules,
    "lines": _lines,
    "icons": _icons,
    "staves": staves,
    "hatching": hatching,
    "circuits": circuits,
    "tables": tables,
    "maps": maps,
    "dithers": dithers,
}


def images(split: Split) -> Images:
    """The pictures of a split, (N, 128, 128), 0 or 255."""
    return drawings(TRAINED, seed=0) if split == "train" else drawings(TESTED, seed=1)
