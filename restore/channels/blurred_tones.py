"""Two tones seen through blurred optics: a scan whose grey levels each tell of several pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.two_tone import OUTLIERS
from restore.channels.values import normal, probability_of

# Standard deviations at which a Gaussian ends, and the least weight of a pixel that is worth a message.
ENDS, SLIGHT = 3.0, 1e-3

# Messages keep this share of what they were; they are at rest if no probability changes by more than this.
KEPT, AT_REST, MOST = 0.3, 0.01, 20


@dataclass(frozen=True, eq=False)
class BlurredTones:
    """y = black + (white - black) · (G * x) + noise, where G is a Gaussian and x is 1 for white; a few y are outliers.

    Attributes:
        black, white: the level of wholly black and white ground; arrays broadcast with the images (H, W).
        noise: the standard deviation of a level, above 0; infinite for pixels that were not seen.
        blur: the standard deviation of G, in pixels.
        outliers: the share of levels that say nothing, in (0, 1).
    """

    black: Any
    white: Any
    noise: Any
    blur: float
    outliers: float = OUTLIERS

    def corrupt(self, x: np.ndarray, generator: Any = None) -> np.ndarray:
        """Show a black and white image (H, W) in grey. Outliers, of which nothing is known, are not drawn."""
        seen = smoothed(np.asarray(x, float), self.blur)
        return np.asarray(self.black + (self.white - self.black) * seen + self.noise * normal(x, generator))

    def log_odds(self, y: np.ndarray, others: np.ndarray) -> np.ndarray:
        """What all levels say about every pixel: log p(y | white) - log p(y | black), the other pixels summed over.

        Found by relaxed belief propagation: what a level says about one pixel, the rest of its Gaussian is taken for
        normally distributed (Rangan, 2010, "Estimation with random linear mixing"). Exact where the other pixels are
        certain, or where there is no blur.

        Args:
            y: grey levels (H, W).
            others: the log-odds of white of every pixel, of all that is known beside the levels, (H, W).

        >>> channel, page = BlurredTones(0.0, 1.0, 0.1, blur=0.7), np.ones((5, 5))
        >>> page[2, 2] = 0
        >>> seen = channel.corrupt(page, np.random.default_rng(0))
        >>> bool(((channel.log_odds(seen, np.ones((5, 5))) > 0) == page).all())
        True
        """
        weights = np.outer(bell(self.blur), bell(self.blur)).astype(np.float32)
        weights /= weights[weights >= SLIGHT].sum()
        reach, width = len(weights) // 2, y.shape[1] + len(weights) - 1
        apart = np.broadcast_to(np.asarray(self.white - self.black, np.float32), y.shape)
        # Levels that tell something; and how far from each, in rows after rows, the pixels are of which it does.
        told = np.flatnonzero(np.isfinite(np.broadcast_to(self.noise, y.shape)))
        near = [(row * width + column, weights[row, column]) for row, column in np.argwhere(weights >= SLIGHT)]
        first = told // y.shape[1] * width + told % y.shape[1]

        def of_told(values: Any) -> np.ndarray:
            return np.broadcast_to(np.asarray(values, np.float32), y.shape).ravel()[told]

        place = of_told((y - self.black) / apart)
        spread = of_told((self.noise / apart) ** 2)
        outlier = of_told(self.outliers / (1 - self.outliers) * np.sqrt(np.pi / 2) * np.abs(apart) / abs(apart.mean()))
        # Pixels beyond the edge are like those at it, and no level is known there.
        known = np.pad(np.asarray(others, np.float32), reach, "edge").ravel()
        messages = np.zeros((len(near), len(told)), np.float32)
        white = np.empty_like(messages)
        total, before = np.zeros_like(known), np.zeros_like(known)
        for step in range(MOST):
            mean, variance = np.zeros_like(place), spread.copy()
            for index, (offset, weight) in enumerate(near):
                there = first + offset
                white[index] = probability_of(known[there] + total[there] - messages[index])
                mean += weight * white[index]
                variance += weight**2 * white[index] * (1 - white[index])
            total[:] = 0
            for index, (offset, weight) in enumerate(near):
                rest = place - mean + weight * white[index]
                wide = variance - weight**2 * white[index] * (1 - white[index])
                bound = outlier * np.sqrt(wide)
                said = np.log((_bell(rest - weight, wide) + bound) / (_bell(rest, wide) + bound))
                messages[index] += np.float32(1 - KEPT if step else 1) * (said - messages[index])
                # No two levels have the same pixel at one distance.
                total[first + offset] += messages[index]
            now = probability_of(known + total)
            if np.abs(now - before).max(initial=0) < AT_REST:
                break
            before = now
        return total.reshape(-1, width)[reach : reach + y.shape[0], reach : reach + y.shape[1]]


def bell(width: float) -> np.ndarray:
    """The weights of a Gaussian of so many pixels; their sum is 1."""
    reach = int(np.ceil(ENDS * width))
    weights = np.exp(-((np.arange(-reach, reach + 1) / width) ** 2) / 2) if reach else np.ones(1)
    return np.asarray(weights / weights.sum())


def smoothed(grey: np.ndarray, width: float) -> np.ndarray:
    """An image (H, W) after a Gaussian of a few pixels or of none; its edges are repeated."""
    if not width:
        return grey
    weights = bell(width).astype(grey.dtype)
    reach = len(weights) // 2
    for axis in (0, 1):
        margins = [(reach, reach) if each == axis else (0, 0) for each in (0, 1)]
        grey = np.lib.stride_tricks.sliding_window_view(np.pad(grey, margins, "edge"), len(weights), axis) @ weights
    return grey


def _bell(off: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.exp(-np.minimum(off**2 / (2 * variance), np.float32(80)))
