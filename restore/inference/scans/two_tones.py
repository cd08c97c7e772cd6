"""Tell the two classes of a picture apart, ink and paper, whatever the light.

Their levels are found by EM for a mixture of two Gaussians whose means vary smoothly over the picture (Dempster, Laird
& Rubin, 1977), on a picture that is smoothed as little as its noise allows. Numpy alone computes it, as restoring takes
neither scipy nor scikit-image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.channels.flips import TwoTone

# Standard deviation, in pixels, of the Gaussian over which a level is averaged: light and paper change over more.
REACH = 30.0

# Side of the cells in which averages are computed.
CELL = 8

# Standard deviations at which a Gaussian ends.
ENDS = 3

# A class has a level of its own where it is more than this share of the pixels within reach.
FEW = 0.02

# Standard deviations, in pixels, of the Gaussians that smooth the picture before it is split into classes. They fall
# as long as the classes are nearly as far apart as they were at best.
SMOOTHED = (1.0, 0.8, 0.6, 0.4, 0.0)
NEARLY = 0.85

# Steps of EM at the first of them, and at each of the others.
STEPS, LATER = 12, 5

# No class is rarer: it has a level all the same.
LEAST_SHARE = 1e-4

# Least standard deviation of a class: levels of 8 bits are rounded.
ROUNDED = 1 / 255

# What a level says counts this much: neighbours that are blurred into each other say the same in part. Chosen on pages
# in the fonts for training.
SHARE = 0.75

# The least distance of the classes of a scan, in standard deviations of the smoothed picture: more than that of the
# classes into which noise on a blank page is split.
APART = 2.0

# The greatest difference of a scan's ground from even paper, as a share of the classes' distance, and the smoothing in
# pixels at which it is measured. The ground of photographs differs more.
UNEVEN, FROM = 0.14, 2.0

# The probability at which a pixel counts as ground, and the share of ground around one that is amid others.
SURE, AMID = 0.98, 0.6


@dataclass(frozen=True, eq=False)
class InkLevels:
    """The two classes of a picture.

    Attributes:
        channel: what a pixel's grey level says.
        noise: standard deviation of a grey level.
        separation: how far the classes are apart, in standard deviations of the smoothed picture.
        unevenness: of the ground, as a share of the classes' distance.
    """

    channel: TwoTone
    noise: float
    separation: float
    unevenness: float

    @property
    def contrast(self) -> float:
        """How far the classes are apart on average."""
        return float(np.mean(self.channel.white - self.channel.black))

    @property
    def distinct(self) -> bool:
        """True if there are two classes."""
        return self.separation >= APART

    @property
    def even(self) -> bool:
        """True if the ground is even, as paper is."""
        return self.unevenness <= UNEVEN


def tones_of(grey: np.ndarray) -> InkLevels | None:
    """The two classes of a picture (H, W); None if it has one level, up to smooth shading.

    >>> ink = np.zeros((40, 60), bool)
    >>> ink[10:30, 20:24] = True
    >>> page = np.where(ink, 0.3, 0.8) + 0.05 * np.random.default_rng(0).standard_normal(ink.shape)
    >>> tones = tones_of(page)
    >>> tones.distinct and tones.even, bool((tones.channel.log_odds(page)[ink] < 0).all())
    (True, True)
    """
    shading = _shading(grey)
    spread = float(np.std(grey - shading))
    if spread < ROUNDED / 2:
        return None
    values = ((grey - shading) / spread).astype(np.float32)
    local, least = Local(values.shape), ROUNDED / spread
    belongs, separation, uneven = _split(values, local, least)
    classes = _Classes.measured(values, belongs, local, least)
    black, white = sorted(
        [spread * level + shading for level in (classes.ground, classes.figure)], key=lambda level: float(level.mean())
    )
    noise = spread * classes.width
    return InkLevels(TwoTone(black, white, noise / SHARE**0.5), noise, separation, uneven)


def _split(values: np.ndarray, local: Local, least: float) -> tuple[np.ndarray, float, float]:
    """Each pixel's probability of being figure, with the separation and the unevenness of `InkLevels`."""
    smooth = smoothed(values, SMOOTHED[0])
    off = smooth - local.image(local.sums(smooth) / local.sums(np.ones_like(smooth)))
    # The figure is on the side of the longer tail.
    belongs = (np.sign((off**3).sum()) * off > off.std()).astype(np.float32)
    for _ in range(STEPS):
        first = _Classes.measured(smooth, belongs, local, least)
        belongs = first.belongs(smooth, first.share)
    even = _unevenness(values, _Classes.measured(values, belongs, local, least), belongs < 1 - SURE)
    last, best = first, first.separation
    for width in SMOOTHED[1:]:
        smooth, finer = smoothed(values, width), belongs
        for _ in range(LATER):
            classes = _Classes.measured(smooth, finer, local, least)
            # Noise hides how rare a class is.
            finer = classes.belongs(smooth, first.share)
        # Less smoothed, edges are sharper and the figure smaller, until noise is taken for figure.
        if classes.share > last.share or classes.separation < NEARLY * best:
            break
        last, best, belongs = classes, max(best, classes.separation), finer
    return belongs, first.separation, even


@dataclass(frozen=True, eq=False)
class _Classes:
    """Two classes of pixels, the ground and the figure on it.

    Attributes:
        ground, figure: their levels at every pixel, (H, W).
        width: standard deviation around them.
        share: of the figure.
    """

    ground: np.ndarray
    figure: np.ndarray
    width: float
    share: float

    @classmethod
    def measured(cls, grey: np.ndarray, belongs: np.ndarray, local: Local, least: float) -> _Classes:
        """The classes of a picture, given each pixel's probability of being figure."""
        every, count, light = (local.sums(values) for values in (np.ones_like(grey), belongs, belongs * grey))
        # A class that is rare here is taken to be as far from the other one as it is on average.
        rest, few = every - count, FEW * every
        own = (local.sums(grey) - light) / np.maximum(rest, few)
        share = min(max(float(belongs.mean()), LEAST_SHARE), 1 - LEAST_SHARE)
        apart = float((belongs * (grey - local.image(own))).mean()) / share
        figure = (light + few * (own + apart)) / (count + few)
        ground = (own * rest + few * (figure - apart)) / (rest + few)
        levels = local.image(ground), local.image(figure)
        # Both classes count the same: a rare one has blurred edges for the most part, which widen it.
        squares = [
            float((weight * (grey - level) ** 2).mean()) / of
            for weight, level, of in zip((1 - belongs, belongs), levels, (1 - share, share), strict=True)
        ]
        return cls(*levels, max(least, (sum(squares) / 2) ** 0.5), share)

    @property
    def separation(self) -> float:
        """How far the classes are apart, in standard deviations."""
        return float(np.abs(self.figure - self.ground).mean()) / self.width

    def belongs(self, grey: np.ndarray, share: float) -> np.ndarray:
        """Each pixel's probability of being figure, given the share of figure."""
        nearer = ((grey - self.ground) ** 2 - (grey - self.figure) ** 2) / (2 * self.width**2)
        return np.asarray(1 / (1 + (1 - share) / share * np.exp(-nearer.clip(-50, 50))))


def _shading(grey: np.ndarray) -> np.ndarray:
    """The parabola over rows and columns that fits a picture (H, W) best: the light, for the most part."""
    rows, columns = (np.stack([np.linspace(-1, 1, size) ** power for power in range(3)]) for size in grey.shape)
    powers = [(i, j) for i in range(3) for j in range(3 - i)]
    products, projected = (rows @ rows.T, columns @ columns.T), rows @ grey @ columns.T
    normal = [[products[0][i, k] * products[1][j, m] for k, m in powers] for i, j in powers]
    weights = np.zeros((3, 3))
    # Least squares of least norm, as a picture of one row has no slope.
    targets = np.array([projected[power] for power in powers])
    weights[tuple(np.transpose(powers))] = np.linalg.lstsq(np.array(normal), targets)[0]
    return np.asarray(rows.T @ weights @ columns)


def _unevenness(grey: np.ndarray, classes: _Classes, ground: np.ndarray) -> float:
    """How uneven the smoothed ground is without its noise, as a share of the classes' distance."""
    apart = classes.figure - classes.ground
    weight = smoothed(ground.astype(np.float32), FROM)
    level = smoothed(np.where(ground, (grey - classes.ground) / apart, 0).astype(np.float32), FROM)
    amid = ground & (weight > AMID)
    if not amid.any():
        return 0.0
    # White noise keeps this share of its variance under the Gaussian.
    noise = float(np.mean((classes.width / apart) ** 2)) / (4 * np.pi * FROM**2)
    return max(0.0, float(np.mean((level[amid] / weight[amid]) ** 2)) - noise) ** 0.5


class Local:
    """Gaussian-weighted sums around every cell of a picture, `reach` pixels wide."""

    def __init__(self, shape: Sequence[int], reach: float = REACH) -> None:
        self._gather, self._spread = zip(*(_axis(size, reach) for size in shape), strict=True)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Weighted sums of an image (H, W) around every cell; all pixels of a cell have the weight of its middle."""
        rows, columns = (np.arange(0, size, CELL) for size in values.shape)
        cells = np.add.reduceat(np.add.reduceat(values, rows, 0), columns, 1)
        return np.asarray(self._gather[0] @ cells @ self._gather[1].T)

    def image(self, cells: np.ndarray) -> np.ndarray:
        """Values of cells as an image (H, W), linear between the cells' centres."""
        return np.asarray(self._spread[0] @ cells @ self._spread[1].T)


def _axis(size: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights of an axis's cells around each of them, (cells, cells), and of the cells at its pixels, (size, cells)."""
    count = -(-size // CELL)
    pixels, centres = np.arange(size), (np.arange(count) + 0.5) * CELL - 0.5
    # The last cell may be shorter.
    middles = np.minimum(centres, (np.arange(count) * CELL + size - 1) / 2)
    gather = np.exp(-(((middles - centres[:, None]) / reach) ** 2) / 2)
    position = ((pixels - centres[0]) / CELL).clip(0, count - 1)
    spread = (1 - np.abs(position[:, None] - np.arange(count))).clip(0)
    return gather.astype(np.float32), spread.astype(np.float32)


def smoothed(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture (H, W) after a Gaussian of `width` pixels, or as it is if that is 0; its edges are repeated."""
    if not width:
        return grey
    reach = int(np.ceil(ENDS * width))
    weights = np.exp(-((np.arange(-reach, reach + 1) / width) ** 2) / 2)
    weights = (weights / weights.sum()).astype(grey.dtype)
    for axis in (0, 1):
        margins = [(reach, reach) if other == axis else (0, 0) for other in (0, 1)]
        grey = np.lib.stride_tricks.sliding_window_view(np.pad(grey, margins, "edge"), len(weights), axis) @ weights
    return grey
