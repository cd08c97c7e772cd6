"""Bit flips: every pixel of a binary image is inverted independently (the binary symmetric channel)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels.values import as_floats, require
from restore.fields import Fields

# The field of a pixel known for certain. It outweighs anything a prior says (fields of trained priors stay below
# about 100), and being finite it lets no infinity into a solver.
CERTAIN = 1000.0


@dataclass(frozen=True)
class BitFlip:
    """p(y_i | x_i) = 1 - p_i if y_i = x_i, else p_i (TAP machine, eqs. 43-46 with the sign of the field corrected).

    Attributes:
        probability: p, one number or a tensor that broadcasts with the images, each value in [0, 1]. 0 means that a
            pixel was seen exactly, 1/2 that nothing was seen, 1 that it is known to be inverted.

    Raises:
        UsageError: if a probability is not a number in [0, 1].
    """

    probability: float | Tensor

    def __post_init__(self) -> None:
        require(self.probability, "p is a flip probability and must lie in [0, 1]", 1)

    def __add__(self, other: BitFlip) -> BitFlip:
        """Flips after flips: a pixel ends inverted if exactly one of the two inverted it."""
        if not isinstance(other, BitFlip):
            return NotImplemented
        first, second = self.probability, other.probability
        return BitFlip(first * (1 - second) + second * (1 - first))

    def log_odds(self, like: Tensor) -> Tensor:
        """log((1 - p) / p), limited to ±CERTAIN, with the type and device of `like`."""
        # The limit comes before the division by zero of p = 0, and half precision never holds a probability.
        p = torch.as_tensor(self.probability, dtype=torch.float64, device=like.device)
        return (torch.log1p(-p) - torch.log(p)).clamp(-CERTAIN, CERTAIN).to(like.dtype)

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        p = torch.as_tensor(self.probability, dtype=x.dtype, device=x.device)
        flipped = torch.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator) < p
        return torch.where(flipped, 1 - x, x)

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        p = torch.as_tensor(self.probability, dtype=x.dtype, device=x.device)
        return torch.where(y == x, torch.log1p(-p), torch.log(p))

    def evidence(self, y: Tensor) -> Fields:
        y = as_floats(y)
        return Fields((2 * y - 1) * self.log_odds(y))
