"""Units that are either 0 or take a value from a slab: (truncated) Gauss-Bernoulli units (TAP machine, appendix C.2).

On a bounded slab they are grey pixels, many of them exactly black; hidden ones with a Gaussian slab make a
spike-and-slab machine. The paper's ρ becomes the presence here, a log-odds, so that the family is exponential, with
statistics [x != 0] and those of the slab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import require
from restore.fields import Fields
from restore.units.bernoulli import log_one_plus_exp
from restore.units.gaussian import Gaussian
from restore.units.truncated_gaussian import TruncatedGaussian


@dataclass(frozen=True)
class Spiked:
    """Units that may be exactly 0: weight 1 there, and exp(presence) times the slab's weight elsewhere.

    Attributes:
        presence: shape (n,) or (batch, n).
        slab: the unit if it is not 0.

    Raises:
        UsageError: if 0 lies outside the support of the slab.

    >>> any_grey = TruncatedGaussian(torch.zeros(1), torch.zeros(1))
    >>> units, nothing = Spiked(torch.zeros(1), any_grey), Fields(torch.zeros(1))  # black half of the time
    >>> round(units.moments(nothing)[0].item(), 4), units.mode(nothing).item()
    (0.25, 0.0)
    """

    presence: Tensor
    slab: TruncatedGaussian | Gaussian

    def __post_init__(self) -> None:
        low, high = self.slab.support
        require(low <= 0 <= high, f"a unit that may be 0 needs a support with 0 in it, not [{low}, {high}]")

    @property
    def size(self) -> int:
        return self.presence.shape[-1]

    @property
    def support(self) -> tuple[float, float]:
        return self.slab.support

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"presence": self.presence, **self.slab.parameters}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Spiked:
        return Spiked(parameters["presence"], self.slab.with_parameters(parameters))

    def tilt(self, fields: Fields) -> Spiked:
        slab = self.slab.tilt(fields)
        return Spiked(fields.with_presence(self.presence).expand_as(slab.bias), slab)

    def _law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        """Log-odds of a value other than 0; mean and variance of the slab."""
        log_partition, mean, variance = self.slab.law(fields)
        return self.presence + log_partition, mean, variance

    def log_partition(self, fields: Fields) -> Tensor:
        return log_one_plus_exp(self._law(fields)[0])

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        log_odds, mean, variance = self._law(fields)
        present = torch.sigmoid(log_odds)
        absent = torch.sigmoid(-log_odds)
        return present * mean, present * (variance + absent * mean * mean)

    def mode(self, fields: Fields) -> Tensor:
        """0 if it is at least as probable as all other values together, else the mode of the slab."""
        return torch.where(self._law(fields)[0] <= 0, 0.0, self.slab.mode(fields))

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        present = torch.sigmoid(self._law(fields)[0])
        uniform = torch.rand(present.shape, dtype=present.dtype, device=present.device, generator=generator)
        # NaN stays NaN, so that an unstable slab is noticed.
        return torch.where(uniform >= present, 0.0, self.slab.sample(fields, generator))

    def log_weight(self, values: Tensor) -> Tensor:
        return torch.where(values == 0, 0.0, self.presence + self.slab.log_weight(values))

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"presence": (values != 0).to(values.dtype), **self.slab.statistics(values)}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        log_odds, mean, variance = self._law(fields)
        present = torch.sigmoid(log_odds)
        return {
            "presence": present,
            "bias": present * mean,
            "quadratic": -present * (variance + mean * mean) / 2,
        }


def spiked_gaussian(presence: Tensor, bias: Tensor, quadratic: Tensor) -> Spiked:
    """Gauss-Bernoulli units."""
    return Spiked(presence, Gaussian(bias, quadratic))


def spiked_truncated_gaussian(presence: Tensor, bias: Tensor, quadratic: Tensor) -> Spiked:
    """Truncated Gauss-Bernoulli units, on grey levels from 0 to 1."""
    return Spiked(presence, TruncatedGaussian(bias, quadratic))
