"""Binary units with values 0 and 1 (TAP machine, appendix C.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from restore.fields import Fields


def log_one_plus_exp(log_odds: Tensor) -> Tensor:
    """log (1 + e^x): the log-partition of a binary unit with these log-odds."""
    # Beyond its threshold softplus(x) is x; at the default of 20 that is wrong in the ninth digit behind the point.
    return softplus(log_odds, threshold=40)


@dataclass(frozen=True)
class Bernoulli:
    """Units with weight exp(bias * x), x in {0, 1}.

    Attributes:
        bias: log-odds of x = 1, shape (n,) or (batch, n).
    """

    bias: Tensor

    @property
    def size(self) -> int:
        return self.bias.shape[-1]

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"bias": self.bias}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Bernoulli:
        return Bernoulli(parameters["bias"])

    def tilt(self, fields: Fields) -> Bernoulli:
        return Bernoulli(self.log_odds(fields))

    def rows(self, index: Tensor) -> Bernoulli:
        return self if self.bias.dim() == 1 else Bernoulli(self.bias.index_select(0, index))

    def log_odds(self, fields: Fields) -> Tensor:
        """Log-odds of x = 1 under extra fields; x**2 = x lets the other fields join the linear one."""
        return fields.with_presence(self.bias + fields.linear - fields.quadratic / 2)

    def log_partition(self, fields: Fields) -> Tensor:
        return log_one_plus_exp(self.log_odds(fields))

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        mean = torch.sigmoid(self.log_odds(fields))
        return mean, mean * (1 - mean)

    def mode(self, fields: Fields) -> Tensor:
        log_odds = self.log_odds(fields)
        return (log_odds > 0).to(log_odds.dtype)

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        # A comparison with uniform numbers takes a quarter of the time of torch.bernoulli on a CPU.
        mean = torch.sigmoid(self.log_odds(fields))
        uniform = torch.rand(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
        return (uniform < mean).to(mean.dtype)

    def log_weight(self, values: Tensor) -> Tensor:
        return self.bias * values

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"bias": values}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        return {"bias": self.moments(fields)[0]}
