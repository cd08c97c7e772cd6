"""The levels of ink and of paper around each pixel of a page whose ink is known, and whether it is a page at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from restore.inference.decision.facts import Facts

# Standard deviation, in pixels, of the Gaussian over which a level is averaged, and side of the cells that it averages,
# whose means tell how much there is in a crop, too, whatever the noise.
REACH, CELL = 20.0, 8

# Ink has a level of its own where it is more than this share of the pixels within reach; else that of the whole page.
FEW = 0.02

# The share of pixels whose level says nothing, which limits what one can say; and that of those of which a prior of
# pages has spoken: with less, F of pages that it has learnt from falls, with more that of others (by hand).
OUTLIERS, MISLEADING = 0.01, 0.4

# The median of the absolute value of a normal variable, in standard deviations.
MEDIAN = 0.6745

# Levels of 8 bits are rounded by less than this.
ROUNDED = 1 / 255


@dataclass(frozen=True, eq=False)
class Sheet:
    """A page.

    Attributes:
        black, white: levels of ink and of paper at every pixel, (H, W).
        noise: standard deviation of a grey level around them, over the page.
        explained: the share of the variance of grey levels, around what light and paper vary, that ink explains; of
            averages over 3x3 pixels, within reach of ink: an empty part of a page has nothing to explain.
        left: standard deviation of what ink and paper do not explain, as a share of their contrast, times `crowded`, by
            `explained`: the more a texture is crowded, and the less of it is ink, the more of it is left.
        grain: standard deviation of white noise.
        crowded: the share of ink within reach of ink.
        false_ink: of the pixels that are likelier ink, the share that is expected to be paper; 1 if there are none.
    """

    black: np.ndarray
    white: np.ndarray
    noise: float
    explained: float
    left: float
    grain: float
    crowded: float
    false_ink: float

    @classmethod
    def of(cls, grey: np.ndarray, paper: np.ndarray, hidden: np.ndarray | None) -> Sheet:
        """Measure a page.

        Args:
            grey: its levels, (H, W).
            paper: the probability of paper at every pixel, (H, W).
            hidden: pixels that do not count, boolean (H, W), or None.
        """
        visible = np.ones(grey.shape, np.float32) if hidden is None else (~hidden).astype(np.float32)
        local, ink = Local(grey.shape), (1 - paper) * visible
        # By what is likelier, since the levels of a mixture lie between those of ink and of paper.
        parts = ((paper < 0.5) * visible, (paper >= 0.5) * visible)
        black, white = (_level(local, grey, part, visible) for part in parts)
        count = max(float(visible.sum()), 1.0)
        residual = grey - paper * white - (1 - paper) * black
        around = grey - local.mean(grey, visible)
        noise = float((visible * residual**2).sum() / count) ** 0.5
        density = local.image(local.sums(ink) / local.sums(visible).clip(1e-6))
        near = (density / FEW).clip(0, 1)
        rest, unexplained, whole = (
            float((weight * _averaged(visible * values) ** 2).sum() / weight.sum().clip(1e-6))
            for weight, values in ((visible, residual), (near * visible, residual), (near * visible, around))
        )
        total = float(ink.sum())
        contrast = float((ink * (white - black)).sum()) / max(total, 1.0)
        crowded = float((ink * density).sum()) / max(total, 1.0)
        # From differences that no edge along an axis has (Donoho, 1995).
        crossed = (residual[:-1, :-1] - residual[:-1, 1:] - residual[1:, :-1] + residual[1:, 1:]) / 2
        grain = float(np.median(np.abs(crossed))) / MEDIAN if crossed.size else 0.0
        explained = 1 - unexplained / max(whole, ROUNDED**2)
        left = rest**0.5 / max(contrast, ROUNDED) * crowded / max(explained, ROUNDED)
        likelier = float(parts[0].sum())
        false_ink = float((parts[0] * paper).sum()) / likelier if likelier else 1.0
        return cls(black, white, noise, explained, left, grain, crowded, false_ink)

    def log_odds(self, grey: np.ndarray, outliers: float = OUTLIERS) -> np.ndarray:
        """The evidence of levels (H, W) for paper: log p(y | paper) - log p(y | ink), two Gaussians with outliers."""
        width = max(self.noise, ROUNDED)
        density = np.log(1 - outliers) - np.log(width * np.sqrt(2 * np.pi))
        beyond = np.log(outliers / (2 * max(abs(self.contrast), ROUNDED)))
        paper, ink = (
            np.logaddexp(density - ((grey - level) / width) ** 2 / 2, beyond) for level in (self.white, self.black)
        )
        return np.asarray(paper - ink)

    def lightened(self, grey: np.ndarray, paper: np.ndarray, *, inverted: bool = False) -> np.ndarray:
        """The page (H, W) with white paper, and ink and its edges as dark against it as they were.

        If `inverted`, all are of light ink on dark paper: what is given, and the page.
        """
        if inverted:
            return 1 - self.lightened(1 - grey, 1 - paper)
        return np.asarray(1 - largest(1 - paper, 1) * (1 - (grey / np.maximum(self.white, ROUNDED)).clip(0, 1)))

    @property
    def contrast(self) -> float:
        """How much darker than paper ink is on average."""
        return float(np.mean(self.white - self.black))

    @property
    def facts(self) -> Facts:
        """What tells whether it is a page of ink on paper."""
        return Facts(
            false_ink=self.false_ink,
            left=self.left,
            grain=self.grain / max(self.contrast, ROUNDED),
            crowded=self.crowded,
        )


def unmixed_levels(grey: np.ndarray, paper: np.ndarray, hidden: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The levels of ink and of paper at every pixel, (H, W), without what lies at edges, where both are mixed.

    What is filled has them, so that it is not seen on paper; see `Sheet.of` for the arguments.
    """
    visible = np.ones(grey.shape, np.float32) if hidden is None else (~hidden).astype(np.float32)
    local = Local(grey.shape)
    ink = paper < 0.5

    def level(part: np.ndarray) -> np.ndarray:
        inside = ~grown(~part, 1) * visible
        return _level(local, grey, inside if inside.any() else part * visible, visible)

    return level(ink), level(~ink)


def _averaged(values: np.ndarray) -> np.ndarray:
    """Averages over 3x3 pixels of an image (H, W), whose edges are repeated."""
    padded = np.pad(values, 1, "edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return np.asarray((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9)


def largest(values: np.ndarray, reach: int) -> np.ndarray:
    """The largest value within some pixels along both axes, of an image (H, W), whose edges are repeated."""
    (height, width), padded = values.shape, np.pad(values, reach, "edge")
    shifts = range(2 * reach + 1)
    rows = reduce(np.maximum, (padded[shift : shift + height] for shift in shifts))
    return reduce(np.maximum, (rows[:, shift : shift + width] for shift in shifts))


def grown(part: np.ndarray, reach: int) -> np.ndarray:
    """A part (H, W), and what is within some pixels of it along both axes."""
    return largest(part.astype(np.int8), reach) > 0


def _level(local: Local, grey: np.ndarray, weight: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """The level of a class at every pixel: its average around; of all of it where there is little; of all, if none."""
    count, light = local.sums(weight), local.sums(weight * grey)
    few = FEW * local.sums(visible)
    some = weight if weight.any() else visible
    whole = float((some * grey).sum()) / max(float(some.sum()), 1e-6)
    return local.image((light + few * whole) / np.maximum(count + few, 1e-6))


class Local:
    """Gaussian-weighted sums around every cell of a picture, `REACH` pixels wide."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._gather, self._spread = zip(*map(_axis, shape), strict=True)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Weighted sums of an image (H, W) around every cell; all pixels of a cell have the weight of its middle."""
        rows, columns = (np.arange(0, size, CELL) for size in values.shape)
        cells = np.add.reduceat(np.add.reduceat(values, rows, 0), columns, 1)
        return np.asarray(self._gather[0] @ cells @ self._gather[1].T)

    def mean(self, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The weighted mean of an image (H, W) around every pixel."""
        return self.image(self.sums(values * weight) / self.sums(weight).clip(1e-6))

    def image(self, cells: np.ndarray) -> np.ndarray:
        """Values of cells as an image (H, W), linear between the cells' centres."""
        return np.asarray(self._spread[0] @ cells @ self._spread[1].T)


def _axis(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of an axis's cells around each of them, (cells, cells), and of the cells at its pixels, (size, cells)."""
    count = -(-size // CELL)
    pixels, centres = np.arange(size), (np.arange(count) + 0.5) * CELL - 0.5
    # The last cell may be shorter.
    middles = np.minimum(centres, (np.arange(count) * CELL + size - 1) / 2)
    gather = np.exp(-(((middles - centres[:, None]) / REACH) ** 2) / 2)
    position = ((pixels - centres[0]) / CELL).clip(0, count - 1)
    spread = (1 - np.abs(position[:, None] - np.arange(count))).clip(0)
    return gather.astype(np.float32), spread.astype(np.float32)
