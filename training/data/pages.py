"""Pages of printed text, drawn by code: headings and paragraphs in many sizes, some justified, some pages tilted.

White ink on black paper, like all priors of strokes; a pixel's grey level is the share of it that is ink. A page
depends only on its fonts, a seed and its number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from restore.data.dataset import Images
from training.data.dice import Dice

# A family: its upright face first, then its others, if any.
Family = Sequence[Path]

HEIGHT, WIDTH = 800, 600

# Font sizes in pixels: ten points at 75 dpi, and fourteen at 300.
SMALLEST, LARGEST = 10.0, 60.0
# The largest size of paragraphs; larger text is headings.
_LARGEST_BODY = 40.0
# The longest paragraph: the sum of the sizes of its lines.
_LONGEST = 300.0
# The largest tilt in degrees.
_TURN = 2.0
_WORDS = Path(__file__).with_name("text.txt")


@dataclass(frozen=True)
class _Column:
    """Where lines of text go.

    Attributes:
        left, right, bottom: its edges.
    """

    left: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left


def pages(families: Sequence[Family], count: int, seed: int, shape: tuple[int, int] = (HEIGHT, WIDTH)) -> Images:
    """This many pages in fonts of these families, (count, H, W); see `page`."""
    return np.stack([page(families, seed, number, shape) for number in range(count)])


def page(families: Sequence[Family], seed: int, number: int, shape: tuple[int, int] = (HEIGHT, WIDTH)) -> Images:
    """Draw a page, (H, W), 0 = paper to 255 = ink.

    Args:
        families: fonts to choose from, for every paragraph.
        seed, number: choose what is on it.
        shape: its height and width.
    """
    dice, (height, width) = Dice(seed, number), shape
    # Turning brings in paper from beyond the edges.
    sheet = Image.new("L", (width, height))
    ink = ImageDraw.Draw(sheet)
    margin = dice.between(0.02, 0.1) * width
    columns = 2 if dice.chance(0.25) else 1
    step = (width - margin) / columns
    for left in (margin + step * column for column in range(columns)):
        column = _Column(left, left + step - margin, height - margin)
        top = margin
        while top < column.bottom:
            top = _block(ink, dice, families, column, top)
    if dice.chance(0.5):
        sheet = sheet.rotate(dice.between(-_TURN, _TURN), Image.Resampling.BICUBIC)
    return np.asarray(sheet, dtype=np.uint8)


def _block(ink: ImageDraw.ImageDraw, dice: Dice, families: Sequence[Family], column: _Column, top: float) -> float:
    """Draw a heading or a paragraph; returns where the next one begins."""
    heading = dice.chance(0.25)
    size = dice.by_factors(SMALLEST, LARGEST if heading else _LARGEST_BODY)
    font, spacing = _font(dice, families, size), dice.between(1.0, 1.5)
    ascent, descent = font.getmetrics()
    pitch = spacing * (ascent + descent)
    # Blocks of all sizes cover about the same area.
    lines = 1 + dice.below(2 if heading else max(3, round(_LONGEST / size)))
    manner = dice.pick(("justified", "justified", "left", "centred"))
    spoken = words(dice, capitals=heading and dice.chance(0.3))
    gap = font.getlength(" ")
    for number in range(lines):
        if top + ascent + descent > column.bottom:
            return column.bottom
        line, length = _line(font, spoken, gap, column.width)
        last = number + 1 == lines
        if last:
            kept = 1 + dice.below(len(line))
            line, length = line[:kept], sum(map(font.getlength, line[:kept])) + gap * (kept - 1)
        spare = max(0.0, column.width - length)
        extra = spare / (len(line) - 1) if manner == "justified" and not last and len(line) > 1 else 0.0
        left = column.left + (spare / 2 if manner == "centred" else 0.0)
        for word in line:
            ink.text((left, top), word, fill=255, font=font)
            left += font.getlength(word) + gap + extra
        top += pitch
    if dice.chance(0.1):
        ink.rectangle((column.left, top, column.right, top + dice.below(3)), fill=255)
        top += size / 2
    return top + dice.between(0.0, 1.0) * size


def _font(dice: Dice, families: Sequence[Family], size: float) -> ImageFont.FreeTypeFont:
    family = dice.pick(families)
    face = family[0] if len(family) == 1 or dice.chance(0.5) else dice.pick(family[1:])
    # Without a text-shaping library, which is not installed everywhere.
    return ImageFont.truetype(face, size, layout_engine=ImageFont.Layout.BASIC)


def _line(font: ImageFont.FreeTypeFont, words: Iterator[str], gap: float, width: float) -> tuple[list[str], float]:
    """As many words as fit into a width, at least one, and the length of the line."""
    line, length = [next(words)], 0.0
    length = font.getlength(line[0])
    while True:
        word = next(words)
        longer = length + gap + font.getlength(word)
        if longer > width:
            return line, length
        line.append(word)
        length = longer


def words(dice: Dice, capitals: bool) -> Iterator[str]:
    """Words of the text from a random place on, with numbers among them."""
    known = _known_words()
    place = dice.below(len(known))
    while True:
        word = _number(dice) if dice.chance(0.05) else known[place % len(known)]
        yield word.upper() if capitals else word
        place += 1


def _number(dice: Dice) -> str:
    value = round(dice.by_factors(1, 1e6))
    form = dice.pick(("{}", "{}", "{:,}", "({})", "{}.", "{}%", "[{}]", "${}", "{}/7", "+{}", "{}:30", "#{}", "{} = x"))
    return form.format(value)


@functools.cache
def _known_words() -> tuple[str, ...]:
    return tuple(_WORDS.read_text(encoding="utf-8").split())
