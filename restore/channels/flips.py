"""The model of binary images: flips."""

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
        sign = 2 * y - 1
        p = like(self.probability, y, double=True)
        return Fields(sign * (torch.log1p(-p) - torch.log(p)).clamp(-CERTAIN_FIELD, CERTAIN_FIELD).to(y.dtype))

    def log_predictive(self, y: Any, means: np.ndarray) -> np.ndarray:
        """log p(y) of pixels that are white with probability `means` before they flip, in numpy."""
        white = means * (1 - self.probability) + (1 - means) * self.probability
        return np.asarray(np.log(np.where(np.greater(y, 0.5), white, 1 - white).clip(1e-6)))


NO_FLIPS = BitFlip(0.0)
