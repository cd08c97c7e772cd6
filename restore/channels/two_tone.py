"""Two tones: a scan's grey levels, of which black and white ink or paper each have their own, with noise around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.channels.values import like, module_of, normal

# The share of pixels whose level says nothing: dust, folds, edges. It limits what one pixel can say.
OUTLIERS = 0.01


@dataclass(frozen=True, eq=False)
class TwoTone:
    """p(y | x) = (1 - o) N(y; level of x, width) + o U, with U uniform over twice the mean distance of the levels.

    Levels may differ from pixel to pixel, as light and paper do; arrays broadcast with the images. Multiplying all
    levels, the width and grey values by a number, or adding one to levels and grey values, changes no evidence.

    Attributes:
        black, white: the mean grey level of black and of white pixels.
        width: the standard deviation around them, above 0.
        outliers: o, in [0, 1).

    >>> channel = TwoTone(0.2, 0.8, 0.1, outliers=0.0)
    >>> channel.log_odds(np.array([0.2, 0.4, 0.6])).round(6).tolist()
    [-18.0, -6.0, 6.0]
    """

    black: Any
    white: Any
    width: float
    outliers: float = OUTLIERS

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        """Show black and white pixels in grey. Outliers, of which nothing is known, are not drawn."""
        return module_of(x).where(x > 0.5, like(self.white, x), like(self.black, x)) + self.width * normal(x, generator)

    def log_density(self, y: np.ndarray, level: Any) -> np.ndarray:
        """log p(y | x) of every pixel, where `level` is that of x."""
        log_normal = -(((y - level) / self.width) ** 2) / 2 - np.log(self.width * np.sqrt(2 * np.pi))
        with np.errstate(divide="ignore"):
            log_uniform = np.log(self.outliers) - np.log(2 * abs(np.mean(self.white) - np.mean(self.black)))
        return np.logaddexp(np.log1p(-self.outliers) + log_normal, log_uniform)

    def log_odds(self, y: np.ndarray) -> np.ndarray:
        """The evidence for white, log p(y | white) - log p(y | black), of every pixel."""
        return self.log_density(y, self.white) - self.log_density(y, self.black)
