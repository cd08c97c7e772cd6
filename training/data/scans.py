"""Grey pages as scanners and cameras give them, with their ink: pairs NAME.png and NAME.truth.png, drawn by code.

A page has print, tables, line art or handwriting; then some of the damages of `wear` befall it. Some stay clean, some
are black and white, some have nothing but noise. The truth is the ink before all damage: what is at least half
covered, however faint it is afterwards. The form is that of the contests of document binarisation: 8 bits of grey,
and 1 bit of truth, ink black.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import grey_dilation, grey_erosion
from skimage.morphology import skeletonize

from restore.data.dataset import Split
from training.data.dice import Dice
from training.data.drawings import KINDS
from training.data.handwriting import hand, written
from training.data.pages import Family, page, words
from training.data.pen import PAPER, SIDE
from training.data.sources import GROUPS, Page, real_pages
from training.data.text import families_to_learn_from
from training.data.wear import OF_CAMERAS, OF_COPIES, OF_INK, OF_PAPER, OF_SCANNERS, Grey, bordered, worn

SHAPE = (512, 512)
COUNTS: dict[Split, int] = {"train": 400, "test": 60}
SEEDS: dict[Split, int] = {"train": 0, "test": 1}
# How much of a page may be ink; and the least of a part of a real page, of which there is one for so many pixels of the
# square root of its area.
LEAST, MOST = 0.005, 0.4
LEAST_REAL, PIXELS_A_PART = 0.003, 160.0
# How many pages are clean, how many are black and white, and how many have nothing but noise.
CLEAN, COPIES, DARK = 0.08, 0.15, 0.2
# How many of the others show where the sheet ends.
BORDERED = 0.12
# Of how much small print nothing is worn away: dots that are cannot be told from dust.
SMALL_PLAIN = 0.6
# Line art that goes with text.
_ART = ("plans", "lines", "staves", "hatching", "circuits", "tables", "maps", "icons", "strokes")

_WORDS = ("Total", "Name", "No.", "Date", "Amount", "due", "paid", "from", "to", "kg", "net", "sum", "rate", "item")

# How much of each pixel is covered by ink, and the same times how dark the ink is, (H, W) in [0, 1].
Drawn = tuple[Grey, Grey]


def _printed(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Paragraphs and headings, some enlarged; thick or thin."""
    enlarged = 1.0 if rng.random() < 0.6 else rng.uniform(1.2, 2.5)
    smaller = (math.ceil(shape[0] / enlarged), math.ceil(shape[1] / enlarged))
    sheet = Image.fromarray(page(families, int(rng.integers(2**31)), 0, smaller))
    covered = np.asarray(sheet.resize(shape[::-1], Image.Resampling.BICUBIC), np.float32) / 255
    covered = np.clip(0.5 + enlarged * (covered - 0.5), 0, 1)
    # Thin strokes between pixels cover none by half, and must not vanish from the truth.
    covered = np.clip(rng.uniform(1.1, 2.2) * covered, 0, 1)
    if rng.random() < 0.15:
        covered = grey_dilation(covered, (2, 2))
    elif enlarged > 1.5 and rng.random() < 0.3:
        covered = grey_erosion(covered, (2, 2))
    if rng.random() < 0.06:
        # Light on dark, in a band.
        top, deep = int(rng.integers(shape[0] - 60)), int(rng.integers(20, 60))
        covered[top : top + deep] = 1 - covered[top : top + deep]
    ink: Grey = covered.astype(np.float32)
    return ink, ink


def _small(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Print of 10 to 18 pixels, as sharp as on a screen: its dots are single pixels."""
    sheet = Image.new("L", shape[::-1])
    ink, dice = ImageDraw.Draw(sheet), Dice(int(rng.integers(2**31)), 0)
    said, left, top = words(dice, capitals=False), rng.uniform(2, 40), rng.uniform(-8, 20)
    while top < shape[0]:
        family = families[int(rng.integers(len(families)))]
        size = int(rng.integers(10, 18, endpoint=True))
        font = ImageFont.truetype(family[0], size, layout_engine=ImageFont.Layout.BASIC)
        for _ in range(int(rng.integers(1, 9))):
            line = next(said)
            while font.getlength(line) < shape[1] - left - 60:
                line = f"{line} {next(said)}"
            ink.text((left, round(top)), line, 255, font)
            top += sum(font.getmetrics()) * rng.uniform(1.0, 1.3)
        top += rng.uniform(0, 20)
    covered = np.clip(rng.uniform(1.1, 1.8) / 255 * np.asarray(sheet, np.float32), 0, 1)
    return covered, covered


def _handwritten(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    return written(rng, shape)


def _table(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Rules, and words or figures in cells."""
    sheet = Image.new("L", shape[::-1])
    ink = ImageDraw.Draw(sheet)
    family = families[int(rng.integers(len(families)))]
    font = ImageFont.truetype(family[0], rng.uniform(12, 30), layout_engine=ImageFont.Layout.BASIC)
    high = sum(font.getmetrics()) * rng.uniform(1.1, 1.8)
    tops = np.arange(rng.uniform(-5, 60), shape[0] - rng.uniform(0, 80), high)
    columns = np.cumsum(np.concatenate([[rng.uniform(-10, 50)], rng.uniform(50, 190, int(rng.integers(2, 7)))]))
    rules, uprights, frame = int(rng.integers(3)), int(rng.integers(3)), int(rng.integers(1, 5))
    for number, top in enumerate(tops):
        width = frame if number in (0, 1, len(tops) - 1) else rules
        if width:
            ink.line((columns[0], top, columns[-1], top), 255, width)
        for left, right in pairwise(columns):
            if number + 1 == len(tops) or rng.random() < 0.15:
                continue
            text = str(rng.choice(_WORDS)) if number == 0 or rng.random() < 0.3 else f"{rng.lognormal(4, 3):,.2f}"
            if font.getlength(text) < right - left - 8:
                ink.text((left + 5, top + (high - sum(font.getmetrics())) / 2), text, 255, font)
    for number, x in enumerate(columns):
        width = frame if number in (0, len(columns) - 1) else uprights
        if width and len(tops):
            ink.line((x, tops[0], x, tops[-1]), 255, width)
    if rng.random() < 0.5:
        sheet = sheet.rotate(rng.uniform(-1.5, 1.5), Image.Resampling.BICUBIC)
    covered = np.clip(rng.uniform(1.1, 2.0) / 255 * np.asarray(sheet, np.float32), 0, 1)
    return covered, covered


def _illustrated(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Print with line art in its place."""
    covered = _printed(rng, families, shape)[0].copy()
    for _ in range(int(rng.integers(1, 4))):
        dice = Dice(int(rng.integers(2**31)), 0)
        drawn = KINDS[str(rng.choice(_ART))](Image.new("L", (SIDE, SIDE), PAPER), dice)
        side = int(SIDE * rng.uniform(1, 2.2))
        art = np.asarray(drawn.resize((side, side), Image.Resampling.BICUBIC), np.float32) / 255
        art = np.clip(0.5 + side / SIDE * (art - 0.5), 0, 1)
        top, left = (int(rng.integers(0, size - side)) for size in shape)
        covered[top : top + side, left : left + side] = art
    return covered, covered


def _filled_in(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """A form or a page, and handwriting over some of it."""
    under = (_table if rng.random() < 0.6 else _printed)(rng, families, shape)
    over = written(rng, shape)
    top, bottom = np.sort(rng.integers(0, shape[0], 2))
    pale = rng.uniform(0.5, 1.0)
    covered, inked = (layer.copy() for layer in under)
    covered[top:bottom] = np.maximum(covered[top:bottom], over[0][top:bottom])
    inked[top:bottom] = np.maximum(inked[top:bottom], pale * over[1][top:bottom])
    return covered, inked


def _thick(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Handwriting or print as a fine scan shows it: strokes of 8 to 40 pixels."""
    larger = rng.uniform(1.5, 4)
    smaller = (math.ceil(shape[0] / larger), math.ceil(shape[1] / larger))
    drawn = written(rng, smaller, replace(hand(rng), height=rng.uniform(20, 40)))
    if rng.random() < 0.4:
        drawn = _printed(rng, families, smaller)

    def enlarged(layer: Grey) -> Grey:
        return np.asarray(Image.fromarray(layer).resize(shape[::-1], Image.Resampling.BICUBIC)).clip(0, 1)

    covered, inked = map(enlarged, drawn)
    sharp = np.clip(0.5 + larger * (covered - 0.5), 0, 1)
    return sharp, sharp * np.where(covered > 0.1, inked / np.maximum(covered, 0.1), 1).clip(0, 1)


def _hairline(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Type of lines of one pixel, as those of light faces."""
    lines = skeletonize(_printed(rng, families, shape)[0] > 0.5).astype(np.float32)
    if rng.random() < 0.5:
        # Between two pixels: each has a part of the line.
        lines = np.maximum(lines, rng.uniform(0.3, 0.8) * np.roll(lines, 1, int(rng.integers(2))))
    return lines, lines


def _leaders(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """A table of contents: what it names, dots, a number."""
    sheet = Image.new("L", shape[::-1])
    ink, dice = ImageDraw.Draw(sheet), Dice(int(rng.integers(2**31)), 0)
    said, left, right = words(dice, capitals=False), rng.uniform(5, 60), shape[1] - rng.uniform(5, 60)
    family = families[int(rng.integers(len(families)))]
    font = ImageFont.truetype(family[0], rng.uniform(10, 28), layout_engine=ImageFont.Layout.BASIC)
    dot = "." if rng.random() < 0.5 else ". "
    for top in np.arange(rng.uniform(-5, 40), shape[0], sum(font.getmetrics()) * rng.uniform(1.05, 1.6)):
        line = " ".join(next(said) for _ in range(int(rng.integers(1, 5)))) + " "
        number = str(int(rng.integers(1, 999)))
        room = right - left - font.getlength(line) - font.getlength(number) - 4
        dots = dot * max(0, int(room / font.getlength(dot)))
        ink.text((left, round(top)), line + dots, 255, font)
        ink.text((right - font.getlength(number), round(top)), number, 255, font)
    covered = np.clip(rng.uniform(1.1, 2.0) / 255 * np.asarray(sheet, np.float32), 0, 1)
    return covered, covered


Content = Callable[[Generator, Sequence[Family], tuple[int, int]], Drawn]

# What is on a page, with how often.
CONTENTS: Sequence[tuple[Content, float]] = (
    (_printed, 0.2),
    (_small, 0.18),
    (_handwritten, 0.22),
    (_table, 0.08),
    (_illustrated, 0.08),
    (_filled_in, 0.09),
    (_thick, 0.06),
    (_hairline, 0.05),
    (_leaders, 0.04),
)


def _toned(grey: Grey, rng: Generator) -> Grey:
    """The grey levels of paper and of ink."""
    paper = rng.uniform(0.5, 1.0)
    ink = rng.uniform(0.02, 0.65) * paper
    return (ink + (paper - ink) * grey).astype(np.float32)


def _cleared(layer: Grey, margins: Mapping[int, int]) -> Grey:
    """Ink without what lies in the margins; each of these quarter turns brings one to the top, so many pixels deep."""
    layer = layer.copy()
    for side, deep in margins.items():
        np.rot90(layer, side)[:deep] = 0
    return layer


def scan(
    families: Sequence[Family], seed: int, number: int, shape: tuple[int, int] = SHAPE
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A page as it was scanned, 0 = black to 255 = white, and where its ink is, (H, W).

    Args:
        families: fonts to choose from.
        seed, number: choose what is on the page, and what befalls it.
        shape: its height and width.
    """
    rng = np.random.default_rng([seed, number])
    contents, often = zip(*CONTENTS, strict=True)
    while True:
        content = contents[int(rng.choice(len(contents), p=often))]
        covered, inked = content(rng, families, shape)
        margins = {}
        if rng.random() < BORDERED:
            # Beyond the sheet there is no ink.
            margins = {int(side): int(rng.integers(6, 100)) for side in rng.permutation(4)[: int(rng.integers(1, 3))]}
            covered, inked = (_cleared(layer, margins) for layer in (covered, inked))
        truth = covered >= 0.5
        if LEAST <= truth.mean() <= MOST:
            break
    manner = rng.random()
    if content is _small and rng.random() < SMALL_PLAIN:
        manner = 0.0 if rng.random() < 0.2 else CLEAN + COPIES
    if manner < CLEAN:
        grey = 1 - covered
    elif manner < CLEAN + COPIES:
        grey = worn(1 - covered, rng, OF_COPIES)
    elif manner < CLEAN + COPIES + DARK:
        plain = 1 - (truth if rng.random() < 0.6 else covered).astype(np.float32)
        grey = worn(plain if rng.random() < 0.4 else _toned(plain, rng), rng, OF_CAMERAS)
    else:
        grey = worn(1 - inked, rng, OF_INK)
        grey = bordered(_toned(grey, rng), rng, margins)
        grey = worn(grey, rng, (*OF_PAPER, *OF_SCANNERS))
    return np.rint(255 * grey).astype(np.uint8), truth


def parts_of(page: Page) -> Iterator[tuple[str, NDArray[np.uint8], NDArray[np.bool_]]]:
    """Parts of a real page, of `SHAPE`, that cover it: a name, grey levels, and where paper is.

    Of a large page as many are chosen as the square root of its area says; what is missing of a small one is mirrored.
    """
    source, name, grey, paper = page
    missing = [(0, max(0, side - size)) for size, side in zip(grey.shape, SHAPE, strict=True)]
    grey, paper = np.pad(grey, missing, "symmetric"), np.pad(paper, missing, "symmetric")
    starts = [
        np.linspace(0, size - side, -(-size // side)).round().astype(int)
        for size, side in zip(grey.shape, SHAPE, strict=True)
    ]
    places = list(product(*starts))
    rng = np.random.default_rng(list(f"{source}/{name}".encode()))
    rng.shuffle(places)
    for number, (top, left) in enumerate(places[: max(1, round(math.sqrt(grey.size) / PIXELS_A_PART))]):
        part = slice(top, top + SHAPE[0]), slice(left, left + SHAPE[1])
        if (~paper[part]).mean() >= LEAST_REAL:
            yield f"{source}-{name}-{number}", grey[part], paper[part]


def write(folder: Path, split: Split, groups: Sequence[str] = tuple(GROUPS)) -> list[Path]:
    """Write the pairs of a split into a folder, ROOT/scans/SPLIT; returns the files of pages.

    To train, parts of the real pages of some groups in ROOT/dibco and ROOT/pages are written as well, if any are there.

    Raises:
        InputError: if there are no fonts.
    """
    families = families_to_learn_from()
    folder.mkdir(parents=True, exist_ok=True)
    made = list[Path]()

    def keep(name: str, grey: NDArray[np.uint8], paper: NDArray[np.bool_]) -> None:
        made.append(folder / f"{name}.png")
        Image.fromarray(grey).save(made[-1])
        Image.fromarray(paper).save(made[-1].with_suffix(".truth.png"))

    for number in range(COUNTS[split]):
        grey, truth = scan(families, SEEDS[split], number)
        keep(f"{number:04}", grey, ~truth)
    for real in real_pages(folder.parents[1], groups=groups) if split == "train" else ():
        for part in parts_of(real):
            keep(*part)
    return made
