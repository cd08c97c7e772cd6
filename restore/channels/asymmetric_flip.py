"""Asymmetric flips: white and black pixels of a binary image are inverted at different rates, as on worn originals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.bit_flip import CERTAIN
from restore.channels.contract import Task, Told
from restore.channels.task import EachPixel, Form, Request
from restore.channels.values import Parameter, as_floats, in_double, like, module_of, require, uniform
from restore.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields


@dataclass(frozen=True)
class AsymmetricFlip:
    """White and black pixels are inverted at rates of their own: p(y = 0 | x = 1) = white, p(y = 1 | x = 0) = black.

    Attributes:
        white: probability that a white pixel turns black, in [0, 1]: one number, or an array that broadcasts with the
            images.
        black: probability that a black pixel turns white. The two add to less than 1: at 1 the observed pixel says
            nothing, and above 1 the image should be inverted first.

    Raises:
        UsageError: if they are not such probabilities.

    >>> import torch
    >>> worn = AsymmetricFlip(white=0.2, black=0.01)  # what looks white almost certainly is
    >>> [round(value, 2) for value in worn.evidence(torch.tensor([0.0, 1.0])).linear.tolist()]
    [-1.6, 4.38]
    """

    white: Parameter
    black: Parameter

    def __post_init__(self) -> None:
        rule = "p has flip probabilities of white and of black pixels, which must lie in [0, 1]"
        require(self.white, rule, 1)
        require(self.black, rule, 1)
        total = float(np.max(np.asarray(self.white) + np.asarray(self.black)))
        if total >= 1:
            raise UsageError(f"{rule}, and add to less than 1, not to {total:g}")

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        """Grey levels of a picture count as white above one half."""
        where = module_of(x).where
        flipped = uniform(x, generator) < where(x > 0.5, like(self.white, x), like(self.black, x))
        return where(flipped, 1 - x, x)

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        import torch

        white, black = like(self.white, x), like(self.black, x)
        flipped, kept = torch.where(x > 0, white, black).log(), torch.log1p(-torch.where(x > 0, white, black))
        return torch.where(y == x, kept, flipped)

    def told(self) -> Told:
        return Told(p=(self.white, self.black))

    def evidence(self, y: Tensor) -> Fields:
        import torch

        from restore.fields import Fields

        y = as_floats(y)
        white, black = in_double(self.white, y), in_double(self.black, y)
        shown_white = torch.log1p(-white) - torch.log(black)
        shown_black = torch.log(white) - torch.log1p(-black)
        return Fields(torch.where(y > 0, shown_white, shown_black).clamp(-CERTAIN, CERTAIN).to(y.dtype))

    def symmetric(self, y: np.ndarray) -> np.ndarray:
        """Flip probabilities, shaped as y, of a `BitFlip` that gives the same evidence for the image y.

        Evidence is one log-odds per pixel, log p(y|1)/p(y|0). Its p is the smaller share of the two:
        black / (1 - white + black) where y is white. It is below one half, as the rates add to less than 1.
        """
        shown_white = self.black / (1 - self.white + self.black)
        shown_black = self.white / (1 - self.black + self.white)
        return np.where(y > 0, shown_white, shown_black)


def _flips(request: Request, white: float, black: float) -> Task:
    channel = AsymmetricFlip(white, black)
    return EachPixel(f"flip:{white!r},{black!r}", channel, channel)


FORM = Form("flip:WHITE,BLACK (rates of white and of black pixels)", "flip:([^:,]*),([^:,]*)", _flips, grey=False)
