"""Bit flips: every pixel of a binary image is inverted independently (the binary symmetric channel)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.contract import Task, Told
from restore.channels.levels import Scale
from restore.channels.task import EachPixel, Form, Request
from restore.channels.values import Parameter, as_floats, in_double, like, module_of, require, uniform

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

# The field of a pixel known for certain. It outweighs anything a prior says (fields of trained priors stay below
# about 100), and is finite so that solvers never meet an infinity.
CERTAIN = 1000.0

# From one or two pixels of a small image to nearly half: with more flips an image is the inverse of one with fewer.
LEVELS = Scale.of_probabilities(0.002, 0.48)


@dataclass(frozen=True)
class BitFlip:
    """Every pixel is inverted with probability p_i: p(y_i | x_i) = 1 - p_i if y_i = x_i, else p_i.

    TAP machine, eqs. 43-46 with the sign of the field corrected.

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

    def __add__(self, other: BitFlip) -> BitFlip:
        """First these flips, then the others: a pixel ends inverted if exactly one of the two inverted it."""
        if not isinstance(other, BitFlip):
            return NotImplemented
        first, second = self.probability, other.probability
        return BitFlip(first * (1 - second) + second * (1 - first))

    def log_odds(self, like: Tensor) -> Tensor:
        """log((1 - p) / p), limited to ±CERTAIN, with the type and device of `like`."""
        import torch

        # In double precision the division by p = 0 gives infinity, which the limit then cuts.
        p = in_double(self.probability, like)
        return (torch.log1p(-p) - torch.log(p)).clamp(-CERTAIN, CERTAIN).to(like.dtype)

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        flipped = uniform(x, generator) < like(self.probability, x)
        return module_of(x).where(flipped, 1 - x, x)

    def log_predictive(self, y: Any, means: np.ndarray, variances: np.ndarray | None = None) -> np.ndarray:
        """log p(y) of pixels that are white with probability `means` before they flip, in numpy."""
        shown = means * (1 - self.probability) + (1 - means) * self.probability
        found: np.ndarray = np.log(np.where(np.greater(y, 0.5), shown, 1 - shown).clip(1e-6))
        return found

    def told(self) -> Told:
        return {"p": self.probability}

    def evidence(self, y: Tensor) -> Fields:
        from restore.fields import Fields

        y = as_floats(y)
        return Fields((2 * y - 1) * self.log_odds(y))


def _flips(request: Request, p: float) -> Task:
    return EachPixel(f"flip:{p!r}", BitFlip(p), BitFlip(p))


FORM = Form("flip:P (0 <= P <= 1)", "flip:([^:]*)", _flips, grey=False)
