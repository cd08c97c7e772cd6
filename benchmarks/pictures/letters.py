"""Characters that Tesseract reads wrongly on a page."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidfuzz.distance import Levenshtein

from training.data import pages
from training.data.pages import Family

DPI = 150
POINTS = (10, 12)
MARGIN, BLOCKS, PITCH = 30, 4, 1.3


def printed(
    families: list[Family],
    seed: int,
    number: int,
    shape: tuple[int, int] = (pages.HEIGHT, pages.WIDTH),
    dpi: int = DPI,
    points: tuple[float, float] = POINTS,
) -> tuple[np.ndarray, str]:
    """A page of paragraphs in letters of some size, each in another font: its ink (H, W), and its text."""
    margin = MARGIN * dpi / DPI
    draw = np.random.default_rng([seed, number])
    source = Path(pages.__file__).with_name("text.txt").read_text(encoding="utf-8")
    words = [word for word in source.split() if word.isascii()]
    place = int(draw.integers(len(words)))
    height, width = shape
    sheet = Image.new("L", (width, height))
    ink, text, top = ImageDraw.Draw(sheet), [], margin
    for block in range(1, BLOCKS + 1):
        family = families[draw.integers(len(families))]
        face = family[draw.integers(len(family))]
        size = draw.uniform(*points) * dpi / 72
        font = ImageFont.truetype(face, size, layout_engine=ImageFont.Layout.BASIC)
        while top + PITCH * size < margin + (height - 2 * margin) * block / BLOCKS:
            line = words[place % len(words)]
            while font.getlength(longer := f"{line} {words[(place + 1) % len(words)]}") <= width - 2 * margin:
                line, place = longer, place + 1
            place += 1
            ink.text((margin, top), line, fill=255, font=font)
            text.append(line)
            top += PITCH * size
    return np.asarray(sheet) > 127, " ".join(text)


def read(page: np.ndarray) -> str:
    """What Tesseract reads on a page of ink, booleans (H, W), or of grey levels in [0, 1], as one line."""
    buffer, white = io.BytesIO(), ~page if page.dtype == bool else page
    Image.fromarray(np.rint(255 * white.clip(0, 1)).astype(np.uint8)).save(buffer, "PNG", dpi=(DPI, DPI))
    done = subprocess.run(
        ["tesseract", "-", "-", "--psm", "6"],
        input=buffer.getvalue(),
        capture_output=True,
        check=True,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
    )
    return " ".join(done.stdout.decode().split())


def errors(found: str, text: str) -> int:
    """The fewest characters to insert, delete or replace to make a text of what was read; all blanks are alike."""
    return Levenshtein.distance(" ".join(found.split()), text)


def misread(page: np.ndarray, text: str) -> float:
    """Character errors, as a share of the characters there are."""
    return errors(read(page), text) / len(text)
