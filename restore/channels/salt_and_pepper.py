"""Salt and pepper: random pixels of a grey image show black or white, whatever they were."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.bit_flip import CERTAIN, BitFlip
from restore.channels.contract import Channel, Task, Told
from restore.channels.gaussian_noise import EXACT, GaussianNoise
from restore.channels.levels import Scale
from restore.channels.task import EachPixel, Form, Request
from restore.channels.values import Parameter, as_floats, in_double, like, module_of, numbers, require, uniform

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

# Salt and pepper may well cover most of an image.
LEVELS = Scale.of_probabilities(0.002, 0.9)

# Grey levels are told apart to this much, so that densities are probabilities.
WIDTH = 1 / 255


@dataclass(frozen=True)
class SaltAndPepper:
    """With probability p_i a pixel shows 0 or 1, equally likely; otherwise it comes through `noise`.

    Evidence is exact for values x that have a density, and perhaps an atom at 0 (`restore.units.Spiked`). Then a value
    strictly between 0 and 1 came through the noise. A 1 is an impulse, since a density gives 1 no mass, and says
    nothing of x. A 0 is an impulse too, unless pixels are otherwise seen exactly: then x = 0 shows 0 with probability
    1 - p/2, any other x with p/2, and this is all that a 0 says.

    In files of 8 bits both ends have mass: true white (255) counts as an impulse here, and so does noise clipped at
    black or white. So where much of an image is truly white, this is an approximation.

    Attributes:
        probability: p, one number or an array that broadcasts with the images, in [0, 1]. With 0 all pixels come
            through the noise; with 1 nothing is seen.
        noise: the channel of the other pixels; by default they are exact.

    Raises:
        UsageError: if a probability is not a number in [0, 1].

    >>> import torch
    >>> seen = SaltAndPepper(0.2).evidence(torch.tensor([1.0, 0.5]))
    >>> seen.quadratic.tolist()  # how exactly each pixel is known: a white one not at all
    [0.0, 10000.0]
    """

    probability: Parameter
    noise: GaussianNoise = EXACT

    def __post_init__(self) -> None:
        require(self.probability, "p is the probability of salt or pepper and must lie in [0, 1]", 1)

    def __radd__(self, noise: GaussianNoise) -> SaltAndPepper:
        """`noise + impulses`: the noise came before. No noise may follow impulses, as that is not modelled."""
        if not isinstance(noise, GaussianNoise) or self.noise is not EXACT:
            return NotImplemented
        return replace(self, noise=noise)

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        # Published scores were measured on data sets for which noise was drawn even if there is none.
        exact = self.noise is EXACT and isinstance(x, np.ndarray)
        seen = x if exact else self.noise.corrupt(x, generator)
        drawn, p = uniform(x, generator), like(self.probability, x)
        return module_of(x).where(drawn < p, numbers(drawn < p / 2, x), seen)

    def log_predictive(self, y: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """log p(y) of grey levels with these means and variances before they are damaged, in numpy."""
        p, variance = np.asarray(self.probability), variances + np.square(self.noise.sigma) + WIDTH**2
        density = np.exp(-((y - means) ** 2) / variance / 2) / np.sqrt(2 * np.pi * variance)
        ends = ((y <= 0) | (y >= 1)) / 2
        found: np.ndarray = np.log(((1 - p) * density * WIDTH + p * ends).clip(1e-12))
        return found

    def told(self) -> Told:
        return {"p": self.probability} | self.noise.told()

    def evidence(self, y: Tensor) -> Fields:
        import torch

        from restore.fields import Fields

        y = as_floats(y)
        through, impulse = self.noise.evidence(y), self._impulse(y)
        p = in_double(self.probability, y)
        # log((1 - p/2) / (p/2)): how much likelier a 0 is if x = 0 than for any other x.
        absence = (torch.log(2 - p) - torch.log(p)).clamp_max(CERTAIN).to(y.dtype)
        dark = (y == 0) & self.noise.exact(y)
        return Fields(
            torch.where(impulse, 0.0, through.linear),
            torch.where(impulse, 0.0, through.quadratic),
            torch.where(dark, -absence, 0.0),
        )

    def _impulse(self, y: Tensor) -> Tensor:
        """Pixels at 0 or 1, if impulses are possible."""
        return ((y == 0) | (y == 1)) & (in_double(self.probability, y) > 0)


def _salt(request: Request, p: float) -> Task:
    # On ink, half of the impulses are flips.
    told: Channel = SaltAndPepper(p) if request.grey else BitFlip(p / 2)
    return EachPixel(f"salt:{p!r}", SaltAndPepper(p), told)


FORM = Form("salt:P", "salt:([^:]*)", _salt)
