"""Models of binary images: flips, and the two grey levels of a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.values import Parameter, as_floats, like, module_of, require, uniform

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

# The field of a pixel known for certain. It outweighs anything a prior says (fields of trained priors stay below
# about 100), and is finite so that solvers never meet an infinity.
CERTAIN_FIELD = 1000.0

# The share of a scan's pixels whose level says nothing: dust, folds, edges. It limits what one pixel can say.
OUTLIERS = 0.01


@dataclass(frozen=True)
class BitFlip:
    """Invert each pixel with probability p_i: p(y_i | x_i) = 1 - p_i if y_i = x_i, else p_i.

    The binary symmetric channel; TAP machine, eqs. 43-46 with the sign of the field corrected.

    Attributes:
        probability: p, one number or an array that broadcasts with the images, each value in [0, 1]. With 0 a pixel is
            seen exactly, with 1/2 nothing is seen, with 1 it is certainly inverted.

    Raises:
        UsageError: if a probability is not a number in [0, 1].

    >>> import torch
    >>> field = BitFlip(0.1).evidence(torch.tensor([0.0, 1.0])).linear  # log(.9 / .1) = 2.1972
    >>> [round(value, 4) for value in field.tolist()]
    [-2.1972, 2.1972]
    """

    probability: Parameter

    def __post_init__(self) -> None:
        require(self.probability, "p is a flip probability and must lie in [0, 1]", 1)

    def __str__(self) -> str:
        return f"flip:{self.probability!r}"

    def corrupt(self, x: Any, generator: Any) -> Any:
        flipped = uniform(x, generator) < like(self.probability, x)
        return module_of(x).where(flipped, 1 - x, x)

    def evidence(self, y: Tensor) -> Fields:
        import torch

        from restore.fields import Fields

        y = as_floats(y)
        # In double precision the division by p = 0 gives infinity, which the limit then cuts.
        sign, p = 2 * y - 1, like(self.probability, y, double=True)
        return Fields(sign * (torch.log1p(-p) - torch.log(p)).clamp(-CERTAIN_FIELD, CERTAIN_FIELD).to(y.dtype))

    def log_predictive(self, y: Any, means: np.ndarray) -> np.ndarray:
        """log p(y) of pixels that are white with probability `means` before they flip, in numpy."""
        white = means * (1 - self.probability) + (1 - means) * self.probability
        return np.asarray(np.log(np.where(np.greater(y, 0.5), white, 1 - white).clip(1e-6)))


NO_FLIPS = BitFlip(0.0)


@dataclass(frozen=True, eq=False)
class TwoTone:
    """Show a binary image in grey: p(y | x) = (1 - o) N(y; level of x, width) + o U.

    U is uniform over twice the mean distance of the levels. Levels may differ from pixel to pixel, as light and paper
    do; arrays broadcast with the images. Multiplying all levels, the width and grey values by a number, or adding one
    to levels and grey values, changes no evidence.

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

    def log_density(self, y: np.ndarray, level: Any) -> np.ndarray:
        """log p(y | x) of every pixel, where `level` is that of x."""
        log_normal = -(((y - level) / self.width) ** 2) / 2 - np.log(self.width * np.sqrt(2 * np.pi))
        with np.errstate(divide="ignore"):
            log_uniform = np.log(self.outliers) - np.log(2 * abs(np.mean(self.white) - np.mean(self.black)))
        return np.logaddexp(np.log1p(-self.outliers) + log_normal, log_uniform)

    def log_odds(self, y: np.ndarray) -> np.ndarray:
        """The evidence for white, log p(y | white) - log p(y | black), of every pixel."""
        return self.log_density(y, self.white) - self.log_density(y, self.black)
