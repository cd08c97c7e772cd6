"""Pages with parts that are no ink on paper: pairs NAME.png and NAME.truth.png at a quarter of the size, drawn by code.

Real pages, where there are any, drawn ones, and drawings; on most of them lie photographs, pictures of overlapping
shapes (dead leaves: Lee, Mumford and Huang, IJCV 41, 2001), clouds, grey areas or screens of dots, in frames or
without. The truth is black where at least half of a pixel belongs to such a part, and white on pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from restore.data.dataset import Split
from training.data.drawings import KINDS, drawing
from training.data.pages import Family
from training.data.pen import SIDE as PEN_SIDE
from training.data.photographs import to_learn_from
from training.data.scans import SEEDS, scan
from training.data.text import families_to_learn_from
from training.data.wear import Grey, smooth

# Pixels of a page that are one here, a page's side in pixels, and how many pairs there are.
SCALE, SIDE = 4, 512
COUNTS: dict[Split, int] = {"train": 8000, "test": 100}

# How many pages have no such part, and how many are nothing else; how many are drawings, and how many of the others are
# real, where there are real ones.
PLAIN, NOTHING_ELSE, DRAWINGS, REAL = 0.35, 0.08, 0.25, 0.6

# The least share of light that falls on the darkest side of a drawing, and the strongest blur of it, in pixels.
LEAST_LIGHT, BLUR = 0.4, 2.0

# How dark paper may be, on half of the pages, as a share of what it was.
DARKEST = 0.4


def _photograph(rng: Generator, shape: tuple[int, int]) -> Grey:
    """A part of a photograph, at some scale."""
    known = to_learn_from()
    whole = known[int(rng.integers(len(known)))].astype(np.float32) / 255
    most = min(length / size for length, size in zip(whole.shape, shape, strict=True))
    scale = min(most, math.exp(rng.uniform(math.log(0.4), math.log(3))))
    high, wide = (max(2, int(scale * size)) for size in shape)
    top, left = int(rng.integers(whole.shape[0] - high + 1)), int(rng.integers(whole.shape[1] - wide + 1))
    part = Image.fromarray(whole[top : top + high, left : left + wide])
    return np.asarray(part.resize(shape[::-1], Image.Resampling.BOX if scale > 1 else Image.Resampling.BICUBIC))


def _leaves(rng: Generator, shape: tuple[int, int]) -> Grey:
    """Discs and boxes of random levels, one over another, with a texture."""
    sheet = Image.new("L", shape[::-1], int(rng.integers(256)))
    draw, low = ImageDraw.Draw(sheet), rng.uniform(3, 20)
    for _ in range(int(rng.integers(30, 400))):
        size = min(low / rng.random() ** 0.5, max(shape))
        x, y = rng.uniform(-size, shape[1]), rng.uniform(-size, shape[0])
        box = (x, y, x + size, y + size * rng.uniform(0.4, 1.6))
        (draw.ellipse if rng.random() < 0.6 else draw.rectangle)(box, fill=int(rng.integers(256)))
    grey = gaussian_filter(np.asarray(sheet, np.float32) / 255, rng.uniform(0, 2.5))
    return grey * (1 + rng.uniform(0, 0.4) * (smooth(rng, shape, rng.uniform(1.5, 8)) - 0.5))


def _clouds(rng: Generator, shape: tuple[int, int]) -> Grey:
    """Noise of several scales."""
    slope, sizes = rng.uniform(0, 1.2), np.array([2.0, 5, 12, 30, 80, 200])
    field = sum(size**slope * (smooth(rng, shape, size) - 0.5) for size in sizes)
    return np.asarray(0.5 + rng.uniform(0.1, 0.3) * field / np.std(field), np.float32)


def area(rng: Generator, shape: tuple[int, int]) -> Grey:
    """One grey, or a ramp."""
    across = np.linspace(0, rng.choice((0.0, rng.uniform(-0.5, 0.5))), shape[1])
    return np.asarray(np.broadcast_to(rng.uniform(0.25, 0.85) + across, shape), np.float32)


def screen(rng: Generator, shape: tuple[int, int]) -> Grey:
    """A picture in dots whose sizes are its levels, or dots of one size."""
    picture = (area if rng.random() < 0.5 else _photograph)(rng, shape)
    angle, pitch = rng.uniform(0, math.pi / 2), rng.uniform(3, 9)
    down, across = np.mgrid[: shape[0], : shape[1]]
    turns = [
        np.cos(2 * math.pi / pitch * (math.cos(at) * across + math.sin(at) * down))
        for at in (angle, angle + math.pi / 2)
    ]
    return np.asarray(0.5 + (picture - 0.5 + 0.25 * (turns[0] + turns[1])) * rng.uniform(2, 6), np.float32)


Part = Callable[[Generator, tuple[int, int]], Grey]

# What lies on a page, with how often; and what may be all that is seen, as one grey would be paper.
PARTS: Sequence[tuple[Part, float]] = (
    (_photograph, 0.4),
    (_leaves, 0.2),
    (_clouds, 0.1),
    (area, 0.15),
    (screen, 0.15),
)
WHOLE: Sequence[tuple[Part, float]] = ((_photograph, 0.7), (_leaves, 0.3))


def _outline(rng: Generator, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Where a part lies: mostly in a box, upright or turned."""
    sheet = Image.new("1", shape[::-1])
    draw = ImageDraw.Draw(sheet)
    high, wide = (math.exp(rng.uniform(math.log(0.15), math.log(0.8))) * size for size in shape)
    top, left = rng.uniform(-0.1 * high, shape[0] - 0.9 * high), rng.uniform(-0.1 * wide, shape[1] - 0.9 * wide)
    if rng.random() < 0.12:
        draw.ellipse((left, top, left + wide, top + high), fill=1)
    else:
        turn = rng.choice((0.0, rng.normal(0, 0.05)))
        corners = np.array([(-wide, -high), (wide, -high), (wide, high), (-wide, high)]) / 2
        turned = corners @ np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        draw.polygon([tuple(point) for point in turned + np.array((left + wide / 2, top + high / 2))], fill=1)
    return np.asarray(sheet)


def _real(rng: Generator, files: Sequence[Path]) -> Grey:
    """A part of a real page, at some scale."""
    with Image.open(files[int(rng.integers(len(files)))]) as opened:
        page = opened.convert("L")
    scale = math.exp(rng.uniform(math.log(0.5), math.log(1.5)))
    scale = max(scale, *(SIDE / size for size in page.size))
    page = page.resize([max(SIDE, round(scale * size)) for size in page.size], Image.Resampling.BICUBIC)
    top, left = int(rng.integers(page.height - SIDE + 1)), int(rng.integers(page.width - SIDE + 1))
    return np.asarray(np.asarray(page.crop((left, top, left + SIDE, top + SIDE))) / 255, np.float32)


def _drawing(rng: Generator) -> Grey:
    """Drawings, masks, plans or codes in grey, of some size: what has two levels is none of these parts."""
    kinds = [number for number, kind in enumerate(KINDS) if kind != "dithers"]
    scale = int(rng.choice((1, 2, 4)))
    count = SIDE // (scale * PEN_SIDE)
    kind, seed = int(rng.choice(kinds)), int(rng.integers(2**31))
    drawn = [
        [drawing(seed, kind + 2 * len(KINDS) * (count * row + column)) for column in range(count)]
        for row in range(count)
    ]
    sheet = Image.fromarray(np.block(drawn)).resize((SIDE, SIDE), Image.Resampling.NEAREST)
    covered = np.asarray(sheet, np.float32) / 255
    covered = gaussian_filter(1 - covered if rng.random() < 0.3 else covered, rng.uniform(0.3, BLUR))
    paper, light = rng.uniform(0.6, 1), np.linspace(rng.uniform(LEAST_LIGHT, 1), 1, SIDE)
    grey = (paper - rng.uniform(0.3, 0.95) * paper * covered) * (light if rng.random() < 0.5 else light[::-1, None])
    return np.asarray((grey + rng.normal(0, rng.uniform(0, 0.04), grey.shape)).clip(0, 1), np.float32)


def pair(
    families: Sequence[Family], files: Sequence[Path], seed: int, number: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A page at a quarter of its size, 0 = black to 255 = white, and where it is no page, (SIDE / 4, SIDE / 4).

    Args:
        families: fonts to draw pages with.
        files: real pages; there may be none.
        seed, number: choose what is on the page.
    """
    rng = np.random.default_rng([seed, 1, number])
    if rng.random() < DRAWINGS:
        grey = _drawing(rng)
    elif files and rng.random() < REAL:
        grey = _real(rng, files)
    else:
        grey = np.asarray(scan(families, seed, number, (SIDE, SIDE))[0] / 255, np.float32)
    grey = grey if rng.random() < 0.5 else grey * np.float32(rng.uniform(DARKEST, 1))
    other, white, manner = np.zeros(grey.shape, bool), np.quantile(grey, 0.9), rng.random()
    whole = manner > 1 - NOTHING_ELSE
    for _ in range(0 if manner < PLAIN else 1 if whole else int(rng.integers(1, 4))):
        where = np.ones(grey.shape, bool) if whole else _outline(rng, grey.shape)
        kinds, often = zip(*(WHOLE if whole else PARTS), strict=True)
        part = kinds[int(rng.choice(len(kinds), p=often))](rng, grey.shape).clip(0, 1)
        dark = rng.uniform(0, 0.4)  # print has no black
        part = dark + (1 - dark) * part
        part = (grey if rng.random() < 0.1 else white) * part
        grey = np.where(where, part, grey).astype(np.float32)
        other |= where
    if rng.random() < 0.5:
        noise = rng.normal(0, rng.uniform(0, 0.05), grey.shape)
        grey = gaussian_filter(grey, rng.uniform(0, 1.5)) + noise.astype(np.float32)
    small, share = (values.reshape(SIDE // SCALE, SCALE, -1, SCALE).mean((1, 3)) for values in (grey, other))
    return np.rint(255 * small.clip(0, 1)).astype(np.uint8), share >= 0.5


def write(folder: Path, split: Split) -> list[Path]:
    """Write the pairs of a split into a folder, ROOT/parts/SPLIT; returns the files of pages.

    To train, real pages below ROOT/dibco and ROOT/pages are used as well, if there are any.

    Raises:
        InputError: if there are no fonts, or no photographs.
    """
    families, root = families_to_learn_from(), folder.parents[1]
    both = [path for name in ("dibco", "pages") for path in sorted((root / name).glob("*/*.png"))]
    files = [path for path in both if split == "train" and path.suffixes == [".png"]]
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{number:04}.png" for number in range(COUNTS[split])]
    for number, path in enumerate(written):
        grey, other = pair(families, files, SEEDS[split] + 7, number)
        Image.fromarray(grey).save(path)
        Image.fromarray(~other).save(path.with_suffix(".truth.png"))
    return written
