"""Draw windows of pages with their truth, each seen in another light: how machines learn to read pages.

A few hundred pages do not cover all sizes of writing, lights and lenses; windows that are drawn anew each time do.
"""

from __future__ import annotations

import io
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from restore.data.dataset import Images

Truth: TypeAlias = NDArray[np.bool_]
Levels: TypeAlias = NDArray[np.float32]

# Pages are enlarged up to twice, and reduced as far as the strokes stay this wide, in pixels; never below the least.
MOST_ENLARGED, LEAST_STROKE, MOST_REDUCED = 2.0, 2.0, 0.35

# How many windows keep the size of their page: dots of small print are single pixels.
AS_IT_IS = 0.3

# Windows may begin this share of their side beyond a page, and are then moved to its border, where pages end, too.
BEYOND_PAGE = 0.25

# Windows with less ink than this are drawn again, mostly.
LEAST_WRITTEN, DRAWN_AGAIN = 0.005, 0.9

# The most that black is lightened and white darkened, of 1; the largest logarithm of a gamma; the steepest shade.
MOST_PALED, MOST_GAMMA, MOST_SHADE = 0.25, 0.4, 0.25

# The largest blur and noise, the lowest quality of JPEG, and how often each befalls a window, as shade does.
MOST_BLUR, MOST_GRAIN, LEAST_QUALITY = 1.2, 0.06, 30
SHADED_WINDOWS, BLURRED_WINDOWS, GRAINY_WINDOWS, COMPRESSED_WINDOWS = 0.3, 0.3, 0.5, 0.2

# How many windows have hidden pixels, and at most how many of theirs are hidden one by one.
HOLED, SCATTERED = 0.35, 0.2


class Window(NamedTuple):
    """A window of a page: grey levels (h, w) from 0 to 1, which pixels are hidden, and where paper is."""

    levels: Levels
    hidden: Truth
    paper: Truth


def drawn(page: Images, paper: Truth, shape: tuple[int, int], rng: Generator) -> Window:
    """Draw a window of a shape from a page (H, W), uint8, of which `paper` is not ink.

    >>> page = np.full((96, 96), 230, np.uint8)
    >>> page[40:50] = 30
    >>> window = drawn(page, page > 127, (32, 32), np.random.default_rng(0))
    >>> window.levels.shape, bool(window.levels[window.paper].mean() > window.levels[~window.paper].mean())
    ((32, 32), True)
    """
    grey, white = _cut(page, paper, shape, rng)
    turns, step = int(rng.integers(4)) if shape[0] == shape[1] else 2 * int(rng.integers(2)), int(rng.choice((1, -1)))
    grey, white = np.rot90(grey, turns)[:, ::step], np.rot90(white, turns)[:, ::step]
    return Window(_lit(grey, rng), _holes(shape, rng), np.ascontiguousarray(white))


def windows_once(pages: Images, shape: tuple[int, int], count: int, seed: int) -> Images:
    """So many windows of each page (N, H, W) with its truth as the lowest bit, drawn by a seed: (count · N, h, w)."""
    rng = np.random.default_rng(seed)
    every = [drawn(page, page & 1 > 0, shape, rng) for page in pages for _ in range(count)]
    return np.stack([np.rint(255 * window.levels).astype(np.uint8) & 0xFE | window.paper for window in every])


def stroke_width(paper: Truth) -> float:
    """The mean width of strokes, in pixels: twice their area by the length of their border, or 0 without any.

    >>> bars = np.arange(8, 68) % 20 >= 4
    >>> round(stroke_width(np.tile(bars, (60, 1))))
    4
    """
    down, across = (int(np.count_nonzero(np.diff(paper, axis=axis))) for axis in (0, 1))
    # Where as much border runs down as across, it is slanted, and counts 4/pi times.
    slanted = 2 * min(down, across) / max(down + across, 1)
    border = (down + across) / (1 + (4 / np.pi - 1) * slanted)
    return float(2 * np.count_nonzero(~paper) / max(border, 1))


def _cut(page: Images, paper: Truth, shape: tuple[int, int], rng: Generator) -> tuple[Levels, Truth]:
    """Grey levels from 0 to 1 and the paper of a window, at some size."""
    least = min(1.0, max(MOST_REDUCED, LEAST_STROKE / max(stroke_width(paper), LEAST_STROKE)))
    while True:
        scale = 1.0 if rng.random() < AS_IT_IS else float(np.exp(rng.uniform(np.log(least), np.log(MOST_ENLARGED))))
        sides = [min(round(side / scale), whole) for side, whole in zip(shape, page.shape, strict=True)]
        places = [
            int(
                np.clip(
                    rng.integers(-int(BEYOND_PAGE * side), whole - side + int(BEYOND_PAGE * side) + 1), 0, whole - side
                )
            )
            for side, whole in zip(sides, page.shape, strict=True)
        ]
        part = tuple(slice(place, place + side) for place, side in zip(places, sides, strict=True))
        white = paper[part]
        if np.count_nonzero(~white) >= LEAST_WRITTEN * white.size or rng.random() >= DRAWN_AGAIN:
            return _resized((page[part] / 255).astype(np.float32), shape), _resized(
                white.astype(np.float32), shape
            ) > 0.5


def _resized(part: Levels, shape: tuple[int, int]) -> Levels:
    from PIL import Image

    if part.shape == shape:
        return part
    how = Image.Resampling.BOX if part.size > shape[0] * shape[1] else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(part).resize(shape[::-1], how)).clip(0, 1)


def _lit(grey: Levels, rng: Generator) -> Levels:
    """A page under another light, by another lens and sensor, in another file."""
    low, high = MOST_PALED * rng.random(2)
    levels = low + (1 - low - high) * grey.astype(np.float64) ** np.exp(rng.uniform(-MOST_GAMMA, MOST_GAMMA))
    if rng.random() < SHADED_WINDOWS:
        down, across = (np.linspace(-1, 1, side) for side in grey.shape)
        slopes = rng.uniform(-MOST_SHADE, MOST_SHADE, 2) / 2
        levels = levels * (1 + slopes[0] * down[:, None] + slopes[1] * across)
    if rng.random() < BLURRED_WINDOWS:
        levels = _smoothed(levels, rng.uniform(0.3, MOST_BLUR))
    if rng.random() < GRAINY_WINDOWS:
        grain = rng.standard_normal(grey.shape)
        if rng.random() < 0.3:
            grain = _smoothed(grain, rng.uniform(0.4, MOST_BLUR))
            grain /= grain.std()
        levels = levels + rng.uniform(0, MOST_GRAIN) * grain
    seen: Levels = levels.clip(0, 1).astype(np.float32)
    return _compressed(seen, int(rng.integers(LEAST_QUALITY, 96))) if rng.random() < COMPRESSED_WINDOWS else seen


def _smoothed(grey: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """A Gaussian blur, by a product with a matrix for each axis."""

    def kernel(side: int) -> NDArray[np.float64]:
        away = np.arange(side)
        weights = np.exp(-(np.subtract.outer(away, away) ** 2) / (2 * sigma**2))
        return weights / weights.sum(1, keepdims=True)

    return kernel(grey.shape[0]) @ grey @ kernel(grey.shape[1]).T


def _compressed(levels: Levels, quality: int) -> Levels:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.rint(255 * levels).astype(np.uint8)).save(file, "jpeg", quality=quality)
    return np.asarray(Image.open(file), np.float32) / np.float32(255)


def _holes(shape: tuple[int, int], rng: Generator) -> Truth:
    """Hidden pixels: none mostly; else single ones, or some blots, boxes and curved lines."""
    from PIL import Image, ImageDraw

    if rng.random() >= HOLED:
        return np.zeros(shape, bool)
    if rng.random() < 0.5:
        return rng.random(shape) < SCATTERED * rng.random()
    sheet = Image.new("1", shape[::-1])
    draw = ImageDraw.Draw(sheet)
    for _ in range(int(rng.integers(1, 10))):
        y, x = (rng.uniform(-0.05, 1.0) * side for side in shape)
        high, wide = rng.uniform(3, 24, 2)
        manner = int(rng.integers(3))
        if manner == 0:
            draw.rectangle((x, y, x + wide, y + high), 1)
        elif manner == 1:
            draw.ellipse((x, y, x + wide, y + high), 1)
        else:
            steps = np.array([x, y]) + np.cumsum(rng.normal(0, 12, (int(rng.integers(2, 7)), 2)), 0)
            draw.line([tuple(step) for step in steps.tolist()], 1, int(rng.integers(1, 9)), joint="curve")
    return np.asarray(sheet)
