"""Grey pages as scanners and cameras give them, with their ink: pairs NAME.png and NAME.truth.png, drawn by code.

A page has print, tables, line art or handwriting; then some of the damages of `wear` befall it. Some stay clean, some
are black and white, some have nothing but noise. The truth is the ink before all damage: what is at least half
covered, however faint it is afterwards. The form is that of the contests of document binarisation: 8 bits of grey,
and 1 bit of truth, ink black.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter, grey_dilation, grey_erosion

from restore.data.dataset import Split
from training.data.dice import Dice
from training.data.drawings import KINDS
from training.data.handwriting import written
from training.data.pages import Family, page, words
from training.data.pen import PAPER, SIDE
from training.data.text import families_to_learn_from
from training.data.wear import OF_CAMERAS, OF_COPIES, OF_INK, OF_PAPER, OF_SCANNERS, Grey, worn

SHAPE = (512, 512)
COUNTS: dict[Split, int] = {"train": 600, "test": 60}
SEEDS: dict[Split, int] = {"train": 0, "test": 1}
# How much of a page may be ink; and the least of a part of a real page.
LEAST, MOST = 0.005, 0.4
LEAST_REAL = 0.01
# How many pages are clean, how many are black and white, and how many have nothing but noise.
CLEAN, COPIES, DARK = 0.08, 0.15, 0.2
# Of how much small print nothing is worn away: dots that are cannot be told from dust.
SMALL_PLAIN = 0.6
# How many drawings have nothing but noise, or are clean: as those who draw scan or export them.
DRAWN_PLAIN = 0.6
# How many pages have parts in pale ink, down to this share of the darkest.
PALE, PALEST = 0.15, 0.25
# What of a pixel's difference to its surroundings is added to tell if it is ink of small print.
SHARPENED = 1.5
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
    """Print of 7 to 18 pixels, as sharp as on a screen: its dots are single pixels, and its hairlines are grey."""
    sheet = Image.new("L", shape[::-1])
    ink, dice = ImageDraw.Draw(sheet), Dice(int(rng.integers(2**31)), 0)
    said, left, top = words(dice, capitals=False), rng.uniform(2, 40), rng.uniform(-8, 20)
    while top < shape[0]:
        family = families[int(rng.integers(len(families)))]
        size = int(rng.integers(7, 18, endpoint=True))
        font = ImageFont.truetype(family[0], size, layout_engine=ImageFont.Layout.BASIC)
        for _ in range(int(rng.integers(1, 9))):
            line = next(said)
            while font.getlength(line) < shape[1] - left - 60:
                line = f"{line} {next(said)}"
            ink.text((left, round(top)), line, 255, font)
            top += sum(font.getmetrics()) * rng.uniform(1.0, 1.3)
        top += rng.uniform(0, 20)
    drawn: Grey = np.asarray(sheet, np.float32) / np.float32(255)
    return sharpened(drawn), np.clip(rng.uniform(1.0, 1.8) * drawn, 0, 1)


def sharpened(covered: Grey) -> Grey:
    """Ink (H, W) in [0, 1] with its hairlines, which may lie between pixels and cover none by half."""
    return (covered + SHARPENED * (covered - gaussian_filter(covered, 1))).clip(0, 1)


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


def _art(kind: str, dice: Dice, side: int) -> Grey:
    """A drawing of a kind, enlarged to a side, with edges as sharp as before."""
    drawn = KINDS[kind](Image.new("L", (SIDE, SIDE), PAPER), dice)
    art = np.asarray(drawn.resize((side, side), Image.Resampling.BICUBIC), np.float32) / 255
    return np.clip(0.5 + side / SIDE * (art - 0.5), 0, 1)


def _illustrated(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Print with line art in its place."""
    covered = _printed(rng, families, shape)[0].copy()
    for _ in range(int(rng.integers(1, 4))):
        dice = Dice(int(rng.integers(2**31)), 0)
        kind = str(rng.choice(_ART))
        side = int(SIDE * rng.uniform(1, 2.2))
        top, left = (int(rng.integers(0, size - side)) for size in shape)
        covered[top : top + side, left : left + side] = _art(kind, dice, side)
    return covered, covered


def _drawn(rng: Generator, families: Sequence[Family], shape: tuple[int, int]) -> Drawn:
    """Line art all over, of one kind or of several, enlarged or not."""
    kinds = rng.choice([*KINDS], int(rng.integers(1, 4)))
    side = int(SIDE * (1.0 if rng.random() < 0.5 else rng.uniform(1, 2.5)))
    covered = np.zeros(shape, np.float32)
    for top, left in product(range(0, shape[0], side), range(0, shape[1], side)):
        art = _art(str(rng.choice(kinds)), Dice(int(rng.integers(2**31)), 0), side)
        place = covered[top : top + side, left : left + side]
        place[:] = art[: place.shape[0], : place.shape[1]]
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


Content = Callable[[Generator, Sequence[Family], tuple[int, int]], Drawn]

# What is on a page, with how often.
CONTENTS: Sequence[tuple[Content, float]] = (
    (_printed, 0.26),
    (_small, 0.17),
    (_handwritten, 0.24),
    (_table, 0.09),
    (_illustrated, 0.07),
    (_drawn, 0.09),
    (_filled_in, 0.08),
)


def _pale(rng: Generator, shape: tuple[int, int]) -> Grey:
    """How dark the ink is, in [0, 1]: pale in some bands and boxes, as notes and headings beside black print are."""
    darkness = np.ones(shape, np.float32)
    for _ in range(int(rng.integers(1, 4))):
        top, bottom = np.sort(rng.integers(0, shape[0], 2))
        left, right = np.sort(rng.integers(0, shape[1], 2)) if rng.random() < 0.4 else (0, shape[1])
        darkness[top:bottom, left:right] = rng.uniform(PALEST, 0.7)
    return darkness


def _toned(grey: Grey, rng: Generator) -> Grey:
    """The grey levels of paper and of ink."""
    paper = rng.uniform(0.5, 1.0)
    ink = rng.uniform(0.02, 0.65) * paper
    return (ink + (paper - ink) * grey).astype(np.float32)


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
        truth = covered >= 0.5
        if LEAST <= truth.mean() <= MOST:
            break
    manner = rng.random()
    plainly = {_small: SMALL_PLAIN, _drawn: DRAWN_PLAIN}.get(content, 0.0)
    if rng.random() < plainly:
        manner = 0.0 if rng.random() < 0.2 else CLEAN + COPIES
    dark = _pale(rng, shape) if rng.random() < PALE else np.ones(shape, np.float32)
    printed = dark * (inked if content is _small else covered)
    if manner < CLEAN:
        grey = 1 - printed
    elif manner < CLEAN + COPIES:
        grey = worn(1 - covered, rng, OF_COPIES)
    elif manner < CLEAN + COPIES + DARK:
        plain = 1 - (truth * dark if rng.random() < 0.6 and content is not _small else printed)
        grey = worn(plain if rng.random() < 0.4 else _toned(plain, rng), rng, OF_CAMERAS)
    else:
        grey = worn(1 - dark * inked, rng, OF_INK)
        grey = worn(_toned(grey, rng), rng, (*OF_PAPER, *OF_SCANNERS))
    return np.rint(255 * grey).astype(np.uint8), truth


def for_choosing(name: str) -> bool:
    """Whether a real page of this name is held out of training, to choose by: a third of them, always the same."""
    return int(sha256(name.encode()).hexdigest(), 16) % 3 == 0


def cut(pages: Path, folder: Path) -> list[Path]:
    """Cut the real pages that are not for choosing, `pages`/YEAR/NAME.png, into parts of `SHAPE`; returns their files.

    Parts with less than a hundredth of ink are left out.
    """
    made = list[Path]()
    for path in sorted(pages.glob("20*/*.png")):
        if path.suffixes != [".png"] or for_choosing(path.stem):
            continue
        both = [np.array(Image.open(file).convert("L")) for file in (path, path.with_suffix(".truth.png"))]
        starts = [
            [max(0, min(number * side, size - side)) for number in range(max(1, -(-(size - side // 8) // side)))]
            for size, side in zip(both[0].shape, SHAPE, strict=True)
        ]
        for (row, top), (column, left) in product(enumerate(starts[0]), enumerate(starts[1])):
            grey, truth = (image[top : top + SHAPE[0], left : left + SHAPE[1]] for image in both)
            if (truth < 128).mean() >= LEAST_REAL:
                made.append(folder / f"{path.parent.name}-{path.stem}-{row}{column}.png")
                Image.fromarray(grey).save(made[-1])
                Image.fromarray(truth).save(made[-1].with_suffix(".truth.png"))
    return made


def write(folder: Path, split: Split) -> list[Path]:
    """Write the pairs of a split into a folder, ROOT/scans/SPLIT; returns the files of pages.

    To train, parts of the real pages in ROOT/dibco are written as well, if there are any.

    Raises:
        InputError: if there are no fonts.
    """
    families = families_to_learn_from()
    folder.mkdir(parents=True, exist_ok=True)
    written_to = [folder / f"{number:04}.png" for number in range(COUNTS[split])]
    for number, path in enumerate(written_to):
        grey, truth = scan(families, SEEDS[split], number)
        Image.fromarray(grey).save(path)
        Image.fromarray(~truth).save(path.with_suffix(".truth.png"))
    return written_to + (cut(folder.parents[1] / "dibco", folder) if split == "train" else [])
