"""Binary pictures of seven families, none of which a published prior has learnt from: white is True, (H, W) each.

Masks are of photographs that scikit-image ships, codes are made by segno, strokes are Omniglot's, icons are signs of a
font, and pages are in fonts for tests. Floor plans are drawn here, otherwise than by `training.data.drawings`; line art
by other programs (`line_art.py`).
"""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data, filters, transform

from benchmarks.pictures.line_art import line_art
from restore.data.archives import members
from training.data.pages import page
from training.data.text import families_for_tests

# Draws the picture of a number.
Draw = Callable[[int], np.ndarray]

# Photographs, and by how many pixels they are smoothed before Otsu's threshold cuts them.
PHOTOGRAPHS = (
    ("horse", 0), ("coins", 3), ("camera", 4), ("cell", 3), ("retina", 5), ("rocket", 4),
    ("moon", 6), ("astronaut", 5), ("chelsea", 5), ("coffee", 5), ("brick", 3), ("gravel", 4),
)  # fmt: skip
SIGNS = [*range(0x2600, 0x26A0), *range(0x2701, 0x27B0), *range(0x2190, 0x21C0)]


def text(number: int) -> np.ndarray:
    return page(families_for_tests(), 500, number, (320, 400)) <= 127


def mask(number: int) -> np.ndarray:
    """A photograph cut in two tones, its longer side 256 to 512 pixels."""
    name, smoothing = PHOTOGRAPHS[number % len(PHOTOGRAPHS)]
    grey = np.asarray(getattr(data, name)(), np.float64)
    grey = grey[..., :3].mean(-1) if grey.ndim == 3 else grey
    longest = (512, 384, 256)[number % 3]
    scale = longest / max(grey.shape)
    grey = transform.resize(grey, [round(side * scale) for side in grey.shape], anti_aliasing=True)
    grey = filters.gaussian(grey, smoothing * longest / 512) if smoothing else grey
    return grey > filters.threshold_otsu(grey)


def code(number: int) -> np.ndarray:
    """A QR code with modules of 3 to 10 pixels."""
    import segno

    draw, content = np.random.default_rng([1, number]), io.BytesIO()
    words = "".join(map(chr, draw.integers(97, 123, draw.integers(10, 120))))
    symbol = segno.make(f"https://example.org/{words}", micro=False)
    symbol.save(content, kind="png", scale=3 + 5 * number % 8)
    return np.asarray(Image.open(content).convert("1"))


def stroke(number: int) -> np.ndarray:
    """A character of Omniglot at its own 105x105, from the archives below RESTORE_DATA."""
    archive = Path(os.environ["RESTORE_DATA"]) / "omniglot" / "images_background_small2.zip"
    for place, (_, read) in enumerate(members(archive)):
        if place == 97 * number % 2000:
            return np.asarray(Image.open(io.BytesIO(read())).convert("1"))
    raise IndexError(number)


def icon(number: int) -> np.ndarray:
    """A sign of 64x64 pixels."""
    return sign(_signs()[number])


@functools.cache
def _signs() -> list[str]:
    """The signs that the font has, in a random order."""
    blank, found = sign(chr(0x10FFFF)), np.random.default_rng(2).permutation(SIGNS)
    return [letter for letter in map(chr, found.tolist()) if (sign(letter) != blank).any()]


def sign(letter: str) -> np.ndarray:
    """A sign of DejaVu Sans, black on 64x64 pixels."""
    found = find_spec("matplotlib")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    drawn = Image.new("L", (64, 64))
    ImageDraw.Draw(drawn).text((32, 32), letter, 255, ImageFont.truetype(path, 58), anchor="mm")
    return np.asarray(drawn) <= 127


def plan(number: int) -> np.ndarray:
    """A floor of 256x256 pixels: rooms in rows of uneven depth, a corridor between them, doors, windows, stairs."""
    dice = np.random.default_rng([3, number])
    sheet = Image.new("1", (256, 256))
    ink = ImageDraw.Draw(sheet)
    outer, inner = int(dice.integers(4, 8)), int(dice.integers(2, 4))
    ink.rectangle((12, 12, 243, 243), outline=1, width=outer)
    top, bottom = sorted(dice.integers(80, 176, 2).tolist())
    bottom = max(bottom, top + 28)
    for row, (near, far) in enumerate(((12, top), (bottom, 243))):
        wall = top if row == 0 else bottom
        ink.line((12, wall, 243, wall), 1, inner)
        left = 12
        while left < 243:
            right = min(243, left + int(dice.integers(45, 95)))
            right = 243 if 243 - right < 40 else right
            ink.line((right, near, right, far), 1, inner)
            door, width = left + int(dice.integers(8, 18)), int(dice.integers(12, 18))
            ink.line((door, wall, door + width, wall), 0, inner + 2)
            box = (door - width, wall - width, door + width, wall + width)
            ink.arc(box, *((270, 360) if row == 0 else (0, 90)), fill=1)
            ink.line((door, wall, door, wall - width if row == 0 else wall + width), 1)
            edge, middle = (12 + outer // 2 if row == 0 else 243 - outer // 2), (left + right) // 2
            ink.rectangle((middle - 10, edge - outer, middle + 10, edge + outer), 0)
            ink.line((middle - 10, edge, middle + 10, edge), 1)
            left = right
    for step in range(170, 232, 6):
        ink.line((step, top + 4, step, bottom - 4), 1)
    return ~np.asarray(sheet)


FAMILIES: Mapping[str, Draw] = {
    "pages": text,
    "masks": mask,
    "codes": code,
    "strokes": stroke,
    "icons": icon,
    "plans": plan,
    "line art": line_art,
}
