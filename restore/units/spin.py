"""Spins: units with values -1 and +1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.units.bernoulli import log_one_plus_exp
from restore.units.contract import rows_of


@dataclass(frozen=True)
class Spin:
    """Units with weight exp(bias * x), x in {-1, +1}. As x**2 = 1, a quadratic field changes nothing but log Z.

    Attributes:
        bias: half the log-odds of x = 1, shape (n,) or (batch, n).
    """

    bias: Tensor

    @property
    def size(self) -> int:
        return self.bias.shape[-1]

    @property
    def support(self) -> tuple[float, float]:
        return -1.0, 1.0

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"bias": self.bias}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Spin:
        return Spin(parameters["bias"])

    def tilt(self, fields: Fields) -> Spin:
        return Spin(self.bias + fields.linear)

    def rows(self, index: Tensor) -> Spin:
        return self.with_parameters(rows_of(self.parameters, index))

    def log_partition(self, fields: Fields) -> Tensor:
        bias = self.bias + fields.linear
        return fields.with_presence(bias.abs() + log_one_plus_exp(-2 * bias.abs()) - fields.quadratic / 2)

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        # As shares of the two values: 1 - tanh² would lose the variance of a strong field to rounding.
        log_odds = 2 * (self.bias + fields.linear)
        plus, minus = torch.sigmoid(log_odds), torch.sigmoid(-log_odds)
        return plus - minus, 4 * plus * minus

    def mode(self, fields: Fields) -> Tensor:
        bias = self.bias + fields.linear
        return torch.where(bias > 0, 1.0, -1.0).to(bias.dtype)

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        mean = torch.sigmoid(2 * (self.bias + fields.linear))
        uniform = torch.rand(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
        return torch.where(uniform < mean, 1.0, -1.0).to(mean.dtype)

    def log_weight(self, values: Tensor) -> Tensor:
        return self.bias * values

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"bias": values}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        return {"bias": self.moments(fields)[0]}
