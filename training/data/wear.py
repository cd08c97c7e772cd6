"""What becomes of a page before it is a file: ink, paper, light, lens, sensor, fax and compression, a function each.

Each takes grey levels (H, W) in [0, 1], 0 = black and 1 = white, draws its parameters from a generator, and returns
grey levels of the same shape, float32; the picture given stays as it is. In the order of `OF_INK`, `OF_PAPER` and
`OF_SCANNERS` they follow what happens to a page.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import distance_transform_edt, gaussian_filter

Grey = NDArray[np.float32]
Damage = Callable[[Grey, Generator], Grey]

# The palest ink that fading leaves, of the darkest.
PALEST = 0.25


def smooth(rng: Generator, shape: tuple[int, int], pixels: float) -> Grey:
    """A random field in [0, 1] that changes within so many pixels, bicubic between the points of a grid."""
    cells = [max(2, round(size / pixels) + 1) for size in shape]
    grid = Image.fromarray(rng.random(cells, dtype=np.float32))
    return np.asarray(grid.resize(shape[::-1], Image.Resampling.BICUBIC)).clip(0, 1)


def _clipped(grey: NDArray[np.floating]) -> Grey:
    return grey.clip(0, 1).astype(np.float32)


# --- ink ---


def faded(grey: Grey, rng: Generator) -> Grey:
    """Pale ink in some regions, down to a quarter of the darkest: ink degradation of Kieu et al., ICPR 2012."""
    level = rng.uniform(PALEST, 0.7)
    step = rng.uniform(1.5, 6)
    field = smooth(rng, grey.shape, rng.uniform(60, 400))
    share = np.clip(0.5 + step * (field - rng.uniform(0.3, 0.7)), 0, 1)
    return _clipped(1 - (1 - grey) * (level + (1 - level) * share))


def uneven(grey: Grey, rng: Generator) -> Grey:
    """Ink that varies along strokes, paper showing through its grain: ink degradation of Kieu et al., ICPR 2012."""
    field = smooth(rng, grey.shape, rng.uniform(6, 25))
    grain = smooth(rng, grey.shape, rng.uniform(1.2, 4))
    level = 1 - rng.uniform(0.15, 0.6) * field
    bare = np.clip(6 * (rng.uniform(0.1, 0.4) - grain * (1.3 - 0.6 * field)), 0, 1)
    return _clipped(1 - (1 - grey) * level * (1 - rng.uniform(0.2, 0.7) * bare))


def bled_through(grey: Grey, rng: Generator) -> Grey:
    """Another page shines through, mirrored and paler: bleed-through of DocCreator, Journet et al., J. Imaging 2017.

    The other page is this one, mirrored and moved, for it is mostly by the same hand or press; or turned, as letters
    are folded. Where a press or a pen went deep, at outlines, more of it shows.
    """
    behind = 1 - grey[:, ::-1]
    if rng.random() < 0.3:
        behind = behind[::-1]
    if rng.random() < 0.15 and grey.shape[0] == grey.shape[1]:
        behind = behind.T
    moved = tuple(int(rng.integers(size // 8, size - size // 8)) for size in grey.shape)
    behind = np.roll(behind, moved, (0, 1))
    if rng.random() < 0.5:
        within = gaussian_filter(behind, rng.uniform(1, 3))
        behind = behind * (1 - rng.uniform(0.2, 0.7) * np.clip(3 * within - 1.5, 0, 1))
    behind = gaussian_filter(behind, rng.uniform(0.6, 3.0))
    level = rng.uniform(0.12, 0.7) * np.clip(1.6 * smooth(rng, grey.shape, rng.uniform(80, 400)), 0.2, 1)
    return _clipped(np.minimum(grey, 1 - level * behind))


def worn_edges(grey: Grey, rng: Generator) -> Grey:
    """Pixels flip the more often, the nearer they are to an edge: the local model of Kanungo et al., ICDAR 1993."""
    ink = grey < 0.5
    distance = np.where(ink, distance_transform_edt(ink), distance_transform_edt(~ink))
    odds = rng.uniform(0.05, 0.45) * np.exp(-rng.uniform(0.8, 2) * (distance - 0.5) ** 2) + rng.uniform(0, 0.003)
    return _clipped(np.where(rng.random(grey.shape) < odds, 1 - grey, grey))


# --- paper ---


def textured(grey: Grey, rng: Generator) -> Grey:
    """Clouds, grain and fibres of paper: noise of several scales, Perlin, SIGGRAPH 1985, and short curves."""
    depth, slope = rng.uniform(0.02, 0.14), rng.uniform(0.2, 1.2)
    scales = np.array([2.0, 5, 14, 40, 120])
    weights = scales ** (slope - 0.7)
    clouds = sum(
        weight * (smooth(rng, grey.shape, scale) - 0.5)
        for weight, scale in zip(weights / np.hypot.reduce(weights), scales, strict=True)
    )
    field = 1 + 2 * depth * clouds
    if rng.random() < 0.5:
        field = field + _fibres(rng, grey.shape, rng.uniform(0.02, 0.1))
    if rng.random() < 0.25:
        # The wires of a mould, in one direction.
        axis, pitch = int(rng.integers(2)), rng.uniform(4, 14)
        along = np.arange(grey.shape[axis]) + 2 * rng.random()
        wires = rng.uniform(0.01, 0.04) * np.sin(2 * math.pi * along / pitch)
        field = field + (wires[:, None] if axis == 0 else wires[None, :])
    return _clipped(grey * field)


def _fibres(rng: Generator, shape: tuple[int, int], depth: float) -> Grey:
    """Short curved lines, dark and bright, in [-depth, depth]."""
    sheet = Image.new("L", shape[::-1], 128)
    draw = ImageDraw.Draw(sheet)
    for _ in range(int(rng.integers(40, 500))):
        radius, start = math.exp(rng.uniform(1.5, 4)), rng.uniform(0, 360)
        x, y = rng.uniform(-20, shape[1]), rng.uniform(-20, shape[0])
        fill = int(rng.choice((0, 60, 200, 255)))
        draw.arc((x, y, x + radius, y + radius * rng.uniform(0.3, 1)), start, start + rng.uniform(20, 120), fill)
    return gaussian_filter((np.asarray(sheet, np.float32) - 128) / 128, 0.6) * np.float32(depth)


def _blot(rng: Generator, shape: tuple[int, int], radius: float) -> tuple[Grey, float]:
    """How far each pixel is inside (positive) an irregular round contour, in pixels; about its radius."""
    row, column = (rng.uniform(-0.1, 1.1) * size for size in shape)
    down, across = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    down, across = down - np.float32(row), (across - np.float32(column)) * np.float32(rng.uniform(0.6, 1.6))
    angle = np.arctan2(down, across)
    edge = radius * (
        1 + sum(rng.normal(0, 0.12 / order) * np.cos(order * angle + rng.uniform(0, 6.3)) for order in range(1, 8))
    )
    edge = edge + 0.2 * radius * (smooth(rng, shape, max(3, radius / 4)) - 0.5)
    return (edge - np.hypot(down, across)).astype(np.float32), radius


def stained(grey: Grey, rng: Generator) -> Grey:
    """Stains darken the paper, most at their edges, or leave a ring: drying drops of Deegan et al., Nature 1997."""
    for _ in range(int(rng.integers(1, 5))):
        inside, radius = _blot(rng, grey.shape, math.exp(rng.uniform(math.log(12), math.log(200))))
        body = 0.0 if rng.random() < 0.25 else rng.uniform(0.05, 0.45)
        rim = rng.uniform(0.1, 0.45) if body == 0 or rng.random() < 0.6 else 0.0
        soft, width = math.exp(rng.uniform(-0.5, 2.5)), rng.uniform(1, 2 + 0.08 * radius)
        cloudy = 0.6 + 0.8 * smooth(rng, grey.shape, max(4, radius / 3))
        veil = body * np.clip(0.5 + inside / (2 * soft), 0, 1) * cloudy
        ring = rim * np.exp(-((inside / width) ** 2)) * (inside > -3 * width) * cloudy
        grey = _clipped(grey * (1 - np.clip(veil + ring, 0, 0.75)))
    return grey


def folded(grey: Grey, rng: Generator) -> Grey:
    """Creases: one side in light, the other in shade, a line between: 3D folds of Kieu et al., ICDAR 2013."""
    down, across = np.mgrid[: grey.shape[0], : grey.shape[1]].astype(np.float32)
    for _ in range(int(rng.integers(1, 5))):
        angle = rng.choice((0, math.pi / 2)) + rng.normal(0, 0.06) if rng.random() < 0.6 else rng.uniform(0, math.pi)
        row, column = (rng.uniform(0.1, 0.9) * size for size in grey.shape)
        waves = rng.uniform(0, 6) * (smooth(rng, grey.shape, rng.uniform(20, 100)) - 0.5)
        off = (down - row) * math.cos(angle) - (across - column) * math.sin(angle) + waves
        width, reach = rng.uniform(0.6, 3), rng.uniform(8, 90)
        slope = rng.uniform(-0.25, 0.25) * np.sign(off) * np.exp(-np.abs(off) / reach)
        crease = rng.uniform(-0.5, 0.4) * np.exp(-((off / width) ** 2)) * smooth(rng, grey.shape, 30)
        grey = _clipped(grey * (1 + slope + crease))
    return grey


def shaded(grey: Grey, rng: Generator) -> Grey:
    """Light that falls off, a soft shadow, or a dark border: Kanungo, Haralick and Phillips, ICDAR 1993."""
    down, across = (np.linspace(-0.5, 0.5, size, dtype=np.float32) for size in grey.shape)
    angle = rng.uniform(0, 2 * math.pi)
    slope = math.sin(angle) * down[:, None] + math.cos(angle) * across
    light = 1 - rng.uniform(0.05, 0.4) * (slope + 0.7) / 1.4
    light = light * (1 - rng.uniform(0, 0.35) * smooth(rng, grey.shape, rng.uniform(120, 500)))
    if rng.random() < 0.4:
        # A shadow with an edge: of a hand, a page beside, the fold of a book.
        angle, place = rng.uniform(0, 2 * math.pi), rng.uniform(0.1, 0.45)
        off = (math.sin(angle) * down[:, None] + math.cos(angle) * across - place) * grey.shape[0]
        light = light * (1 - rng.uniform(0.1, 0.55) * np.clip(0.5 + off / math.exp(rng.uniform(0.5, 4)), 0, 1))
    if rng.random() < 0.15:
        # Beyond the sheet the glass of the scanner is black.
        side, deep = int(rng.integers(4)), int(rng.integers(4, 40))
        light = np.rot90(light, side).copy()
        edge = deep + np.cumsum(rng.normal(0, 0.15, light.shape[1])) + rng.normal(0, 0.03) * np.arange(light.shape[1])
        light[np.arange(light.shape[0])[:, None] < edge] *= rng.uniform(0.02, 0.4)
        light = np.rot90(light, -side)
    return _clipped(grey * light)


# --- scanner ---


def blurred(grey: Grey, rng: Generator) -> Grey:
    """The lens: a Gaussian of .4 to 1.6 pixels, from document image defect models of Baird, 1992."""
    return _clipped(gaussian_filter(grey, rng.uniform(0.4, 1.6)))


def noisy(grey: Grey, rng: Generator) -> Grey:
    """The sensor: noise that grows with light, and noise that does not: Healey and Kondepudy, PAMI 1994."""
    read, shot = (math.exp(rng.uniform(math.log(0.003), math.log(0.07))) for _ in range(2))
    return _clipped(grey + np.sqrt(read**2 + shot**2 * grey) * rng.standard_normal(grey.shape, np.float32))


def dim(grey: Grey, rng: Generator) -> Grey:
    """A sensor in the dark: white noise of .01 to .35, the same everywhere: Healey and Kondepudy, PAMI 1994."""
    noise = math.exp(rng.uniform(math.log(0.01), math.log(0.35)))
    return _clipped(grey + noise * rng.standard_normal(grey.shape, np.float32))


def grainy(grey: Grey, rng: Generator) -> Grey:
    """Grain of film or a copier, correlated, strongest in mid-tones: after Augraphy, Groleau et al., 2023."""
    grain = gaussian_filter(rng.standard_normal(grey.shape, np.float32), rng.uniform(0.5, 1.3))
    depth = rng.uniform(0.015, 0.07) / grain.std()
    return _clipped(grey + depth * (0.4 + 2.4 * grey * (1 - grey)) * grain)


def faxed(grey: Grey, rng: Generator) -> Grey:
    """Rows lost, doubled or dark, and streaks: faxes and rollers of Augraphy, Groleau et al., 2023."""
    grey = grey.copy()
    height, width = grey.shape
    for _ in range(int(rng.integers(1, 12))):
        row, rows = int(rng.integers(1, height - 4)), int(rng.integers(1, 4))
        left, right = np.sort(rng.integers(0, width + 1, 2)) if rng.random() < 0.5 else (0, width)
        manner, part = rng.random(), (slice(row, row + rows), slice(left, right))
        if manner < 0.5:
            grey[part] = np.maximum(grey[part], rng.uniform(0.7, 1.0) * grey.max())
        elif manner < 0.75:
            grey[part] = grey[row - 1, left:right]
        else:
            grey[part] *= rng.uniform(0.2, 0.8)
    for _ in range(int(rng.integers(0, 4))):
        column, level = int(rng.integers(width)), rng.uniform(0.3, 1.4)
        top, bottom = np.sort(rng.integers(0, height + 1, 2)) if rng.random() < 0.5 else (0, height)
        grey[top:bottom, column : column + int(rng.integers(1, 3))] *= np.float32(level)
    return _clipped(grey)


def dusty(grey: Grey, rng: Generator) -> Grey:
    """Clustered discs of 1 to 8 pixels, dark or bright: after dust of Augraphy, Groleau et al., 2023."""
    height, width = grey.shape
    sheet = Image.fromarray(np.rint(255 * grey).astype(np.uint8))
    draw = ImageDraw.Draw(sheet)
    dark, bright = 255 * float(np.quantile(grey, 0.01)), 255 * float(np.quantile(grey, 0.99))
    darkness = rng.uniform(0.3, 1.0)
    most, white = math.exp(rng.uniform(math.log(1.2), math.log(8))), rng.uniform(0, 0.6)
    for _ in range(int(rng.integers(1, 12))):
        row, column, spread = rng.uniform(0, height), rng.uniform(0, width), math.exp(rng.uniform(2, 6))
        for _ in range(int(rng.integers(3, 50))):
            y, x = rng.normal(row, spread), rng.normal(column, spread)
            size = max(1.0, rng.uniform(0.4, 1) * most)
            fill = bright if rng.random() < white else bright + (dark - bright) * darkness
            half = (size - 1) / 2
            draw.ellipse((x - half, y - half, x + half, y + half * rng.uniform(0.7, 1)), round(fill))
    specks = np.asarray(sheet)
    return _clipped(np.where(specks == np.rint(255 * grey), grey, specks / 255))


def compressed(grey: Grey, rng: Generator) -> Grey:
    """JPEG of quality 25 to 90: Wallace, 1992."""
    file = io.BytesIO()
    Image.fromarray(np.rint(255 * grey).astype(np.uint8)).save(file, "jpeg", quality=int(rng.integers(25, 91)))
    return np.asarray(Image.open(file), np.float32) / np.float32(255)


def thresholded(grey: Grey, rng: Generator) -> Grey:
    """Black and white by one threshold after blur and noise: document image defect models of Baird, 1992."""
    low, high = (float(np.quantile(grey, q)) for q in (0.01, 0.9))
    level = low + (high - low) * rng.uniform(0.4, 0.65)
    seen = gaussian_filter(grey, rng.uniform(0.2, 0.9)) + rng.uniform(0, 0.12) * rng.standard_normal(grey.shape)
    return (seen > level).astype(np.float32)


def flipped(grey: Grey, rng: Generator) -> Grey:
    """Each pixel inverted with a probability up to .1, independently: the binary symmetric channel, Shannon, 1948."""
    return _clipped(np.where(rng.random(grey.shape) < rng.uniform(0.002, 0.1), 1 - grey, grey))


# In the order in which they happen, with how often a damaged page has each.
OF_INK: Sequence[tuple[Damage, float]] = ((worn_edges, 0.06), (faded, 0.25), (uneven, 0.35), (bled_through, 0.4))
OF_PAPER: Sequence[tuple[Damage, float]] = ((textured, 0.7), (stained, 0.3), (folded, 0.2), (shaded, 0.45))
OF_SCANNERS: Sequence[tuple[Damage, float]] = (
    (blurred, 0.7),
    (grainy, 0.18),
    (noisy, 0.45),
    (faxed, 0.08),
    (dusty, 0.25),
    (compressed, 0.5),
)
# Of a page that is black and white.
OF_COPIES: Sequence[tuple[Damage, float]] = ((thresholded, 1.0), (flipped, 0.7), (faxed, 0.1), (dusty, 0.6))
# Of a page that lacks nothing but light.
OF_CAMERAS: Sequence[tuple[Damage, float]] = ((shaded, 0.1), (blurred, 0.3), (dim, 1.0), (compressed, 0.1))
DAMAGES = (*OF_INK, *OF_PAPER, *OF_SCANNERS, *OF_COPIES[:2], *OF_CAMERAS[2:3])


def worn(grey: Grey, rng: Generator, damages: Sequence[tuple[Damage, float]]) -> Grey:
    """Apply some of these damages in their order, each as often as is given beside it."""
    for damage, often in damages:
        if rng.random() < often:
            grey = damage(grey, rng)
    return grey
