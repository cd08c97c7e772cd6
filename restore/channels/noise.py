"""Models of grey images: Gaussian noise, and salt and pepper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels import flips
from restore.channels.values import Parameter, as_floats, like, module_of, normal, require, uniform

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

# The least standard deviation that solvers are given, and the inverse variance that it means: a pixel seen exactly
# counts as known to 1 % of the grey scale.
SHARPEST = 0.01
CERTAIN_PRECISION = 1 / SHARPEST**2

# The resolution of grey levels, which turns densities into probabilities.
WIDTH = 1 / 255


@dataclass(frozen=True)
class GaussianNoise:
    """Add normal noise to each pixel: p(y_i | x_i) has mean x_i and standard deviation sigma_i.

    As a function of x_i this is exp(x_i y_i / sigma_i² - x_i² / (2 sigma_i²)), a linear and a quadratic field.
    The observation is not clipped at black and white; if it was, as in a file of 8 bits, this is an approximation.

    Attributes:
        sigma: standard deviation, where black is 0 and white is 1: one number or an array that broadcasts with the
            images, finite and not negative. With 0 a pixel is seen exactly. Evidence is that for a sigma of at least
            SHARPEST = 1/sqrt(CERTAIN_PRECISION).

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

    def __str__(self) -> str:
        return f"noise:{self.sigma!r}"

    def corrupt(self, x: Any, generator: Any) -> Any:
        return x + like(self.sigma, x) * normal(x, generator)

    def evidence(self, y: Tensor) -> Fields:
        from restore.fields import Fields

        y = as_floats(y)
        precision = like(self.sigma, y).square().reciprocal().clamp_max(CERTAIN_PRECISION)
        return Fields(y * precision, precision)


NO_NOISE = GaussianNoise(0.0)


@dataclass(frozen=True)
class SaltAndPepper:
    """Show 0 or 1, equally likely, with probability p_i; let other pixels come through `noise`.

    Evidence is exact for values x that have a density, and perhaps an atom at 0 (`restore.units.Spiked`). Then a value
    strictly between 0 and 1 came through the noise. A 1 is an impulse, since a density gives 1 no mass, and says
    nothing of x. A 0 is an impulse too if the noise has a sigma above 0. If pixels otherwise come through exactly,
    x = 0 shows 0 with probability 1 - p/2, and any other x does with probability p/2; a 0 says no more than this.

    In files of 8 bits both ends have mass: true white (255) counts as an impulse here, and so does noise clipped at
    black or white. So where much of an image is truly white, this is an approximation.

    Attributes:
        probability: p, one number or an array that broadcasts with the images, in [0, 1]. With 0 all pixels come
            through the noise; with 1 nothing is seen.
        noise: the channel of the other pixels; by default they are exact.

    Raises:
        UsageError: if a probability is not a number in [0, 1].

    >>> import torch
    >>> fields = SaltAndPepper(0.2).evidence(torch.tensor([1.0, 0.5]))
    >>> fields.quadratic.tolist()  # how exactly each pixel is known: a white one not at all
    [0.0, 10000.0]
    """

    probability: Parameter
    noise: GaussianNoise = NO_NOISE

    def __post_init__(self) -> None:
        require(self.probability, "p is the probability of salt or pepper and must lie in [0, 1]", 1)

    def __str__(self) -> str:
        return f"salt:{self.probability!r}"

    def corrupt(self, x: Any, generator: Any) -> Any:
        # Published scores were measured on data sets for which noise was drawn even if there is none.
        exact = self.noise is NO_NOISE and isinstance(x, np.ndarray)
        noisy = x if exact else self.noise.corrupt(x, generator)
        draw = uniform(x, generator)
        p = like(self.probability, x)
        where = module_of(x).where
        return where(draw < p / 2, 1.0, where(draw < p, 0.0, noisy))

    def evidence(self, y: Tensor) -> Fields:
        import torch

        from restore.fields import Fields

        y = as_floats(y)
        through = self.noise.evidence(y)
        ends = (y == 0) | (y == 1)
        p = like(self.probability, y, double=True)
        impulse = ends & (p > 0)
        # log((1 - p/2) / (p/2)): how much likelier a 0 is if x = 0 than for any other x.
        absence = (torch.log(2 - p) - torch.log(p)).clamp_max(flips.CERTAIN_FIELD).to(y.dtype)
        dark = (y == 0) & (like(self.noise.sigma, y) == 0)
        return Fields(
            torch.where(impulse, 0.0, through.linear),
            torch.where(impulse, 0.0, through.quadratic),
            torch.where(dark, -absence, 0.0),
        )

    def log_predictive(self, y: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """log p(y) of grey levels with these means and variances before they are damaged, in numpy.

        A level of exactly 0 or 1 stands for all beyond it, as in files, which cut them off.
        """
        p = np.asarray(self.probability)
        deviation = np.sqrt(variances + np.square(self.noise.sigma) + WIDTH**2)
        white = y >= 1
        beyond = below(np.where(white, means - 1, -means) / deviation + WIDTH / 2 / deviation)
        z = (y - means) / deviation
        within = np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * deviation) * WIDTH
        ends = (white | (y <= 0)) / 2
        noisy = np.where((y == 0) | (y == 1), beyond, within)
        return np.asarray(np.log(((1 - p) * noisy + p * ends).clip(1e-12)))


def below(z: np.ndarray) -> np.ndarray:
    """The probability that a standard normal variable is below z, to 1e-7 (Abramowitz & Stegun, 26.2.17).

    >>> below(np.array([-1.0, 0.0, 2.0])).round(4).tolist()
    [0.1587, 0.5, 0.9772]
    """
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = np.polyval([1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530, 0.0], t)
    tail = series * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.where(z > 0, 1 - tail, tail))
