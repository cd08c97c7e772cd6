"""Gaussian noise: every pixel of a grey image is off by an independent normal number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from restore.channels.contract import Task, Told
from restore.channels.levels import Scale
from restore.channels.task import EachPixel, Form, Request
from restore.channels.values import Parameter, as_floats, like, normal, require

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

# The largest inverse variance that solvers are given: a pixel seen exactly counts as known to 1 % of the grey scale.
CERTAIN = 1e4

# The same as a standard deviation.
SHARPEST = 0.01

# With more noise little of an image is left, and solvers take ever longer.
LEVELS = Scale.of_sizes(SHARPEST, 0.5)


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise is added to every pixel: p(y_i | x_i) has mean x_i and standard deviation sigma_i.

    As a function of x_i this is exp(x_i y_i / sigma_i² - x_i² / (2 sigma_i²)), a linear and a quadratic field.
    The observation is not clipped at black and white; if it was, as in a file of 8 bits, this is an approximation.

    Attributes:
        sigma: standard deviation, where black is 0 and white is 1: one number or an array that broadcasts with the
            images, finite and not negative. With 0 a pixel is seen exactly. The evidence for a sigma below
            SHARPEST = 1/sqrt(CERTAIN) is that for SHARPEST.

    Raises:
        UsageError: if sigma is anything else.

    >>> import torch
    >>> fields = GaussianNoise(0.5).evidence(torch.tensor([0.75]))
    >>> fields.linear.item(), fields.quadratic.item()  # y / sigma², 1 / sigma²
    (3.0, 4.0)
    """

    sigma: Parameter

    def __post_init__(self) -> None:
        require(self.sigma, "sigma is the standard deviation of noise and must be a finite number from 0 up")

    def exact(self, like: Tensor) -> Tensor:
        """Which pixels are seen exactly; boolean, broadcastable with the images."""
        return self._sigma(like) == 0

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        return x + like(self.sigma, x) * normal(x, generator)

    def told(self) -> Told:
        return {"sigma": self.sigma}

    def evidence(self, y: Tensor) -> Fields:
        from restore.fields import Fields

        y = as_floats(y)
        precision = self._sigma(y).square().reciprocal().clamp_max(CERTAIN)
        return Fields(y * precision, precision)

    def _sigma(self, x: Tensor) -> Tensor:
        sigma: Tensor = like(self.sigma, x)
        return sigma


EXACT = GaussianNoise(0.0)


def _noise(request: Request, sigma: float) -> Task:
    return EachPixel(f"noise:{sigma!r}", GaussianNoise(sigma), GaussianNoise(sigma))


FORM = Form("noise:SIGMA (SIGMA >= 0)", "noise:([^:]*)", _noise)
