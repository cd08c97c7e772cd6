"""Gaussian noise: every pixel of a grey image is off by an independent normal number."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels.values import as_floats, require
from restore.fields import Fields

# The inverse variance of a pixel seen exactly: known to a hundredth of the grey scale. Solvers see no larger one.
CERTAIN = 1e4


@dataclass(frozen=True)
class GaussianNoise:
    """p(y_i | x_i) is normal with mean x_i and standard deviation sigma_i.

    As a function of x_i that is exp(x_i y_i / sigma_i² - x_i² / (2 sigma_i²)), a linear and a quadratic field.
    What is observed is not cut off at black and white. Where it was, as in a file of 8 bits, this is an approximation.

    Attributes:
        sigma: standard deviation where black is 0 and white is 1: one number or a tensor that broadcasts with the
            images, finite and not negative. With 0 a pixel was seen exactly; evidence of a sigma below
            1/sqrt(CERTAIN) = 0.01 is that of 0.01.

    Raises:
        UsageError: if sigma is anything else.
    """

    sigma: float | Tensor

    def __post_init__(self) -> None:
        require(self.sigma, "sigma is the standard deviation of noise and must be a finite number from 0 up")

    def __add__(self, other: GaussianNoise) -> GaussianNoise:
        """Noise after noise: variances add."""
        if not isinstance(other, GaussianNoise):
            return NotImplemented
        first, second = self.sigma, other.sigma
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            return GaussianNoise(torch.hypot(*torch.broadcast_tensors(*map(torch.as_tensor, (first, second)))))
        return GaussianNoise(math.hypot(first, second))

    def exact(self, like: Tensor) -> Tensor:
        """Which pixels come through as they are; boolean, broadcastable with the images."""
        return self._sigma(like) == 0

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        normal = torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)
        return x + self._sigma(x) * normal

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        """As of every channel; of a pixel seen exactly the log-probability of y, not its density."""
        sigma = self._sigma(x)
        density = -((y - x) / sigma).square() / 2 - sigma.log() - math.log(2 * math.pi) / 2
        return torch.where(sigma > 0, density, torch.where(y == x, 0.0, -math.inf).to(x.dtype))

    def evidence(self, y: Tensor) -> Fields:
        y = as_floats(y)
        precision = self._sigma(y).square().reciprocal().clamp_max(CERTAIN)
        return Fields(y * precision, precision)

    def _sigma(self, like: Tensor) -> Tensor:
        return torch.as_tensor(self.sigma, dtype=like.dtype, device=like.device)
