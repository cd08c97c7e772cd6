"""Binary units with values 0 and 1 (TAP machine, appendix C.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from restore.fields import Fields
from restore.units.two_valued import TwoValuedUnits


def log_one_plus_exp(log_odds: Tensor) -> Tensor:
    """log (1 + e^x): the log-partition of a binary unit with these log-odds, for x of any size.

    >>> log_one_plus_exp(torch.tensor([-200.0, 200.0])).tolist()
    [0.0, 200.0]
    """
    # Above its threshold softplus(x) returns x; the default threshold of 20 is wrong in the ninth decimal place.
    return softplus(log_odds, threshold=40)


@dataclass(frozen=True)
class Bernoulli(TwoValuedUnits):
    """Units that are 0 or 1, with weight exp(bias * x).

    Attributes:
        bias: log-odds of x = 1, shape (n,) or (batch, n).

    >>> units = Bernoulli(torch.tensor([-2.0, 0.0, 2.0]))
    >>> mean, _ = units.moments(Fields(torch.tensor(2.0)))  # all three under evidence for 1
    >>> [round(value, 2) for value in mean.tolist()]
    [0.5, 0.88, 0.98]
    """

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def tilt(self, fields: Fields) -> Bernoulli:
        return Bernoulli(self.log_odds(fields))

    def log_odds(self, fields: Fields) -> Tensor:
        """Log-odds of x = 1 under extra fields; because x² = x, all fields act as linear ones."""
        # A quadratic field that is one number for all units is subtracted from the smaller tensor.
        return fields.with_presence(self.bias - fields.quadratic / 2 + fields.linear)

    def log_partition(self, fields: Fields) -> Tensor:
        return log_one_plus_exp(self.log_odds(fields))

    def mean(self, fields: Fields) -> Tensor:
        return torch.sigmoid(self.log_odds(fields))

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        mean = self.mean(fields)
        return mean, mean * (1 - mean)

    def mode(self, fields: Fields) -> Tensor:
        log_odds = self.log_odds(fields)
        return (log_odds > 0).to(log_odds.dtype)

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        return self.draw(fields, generator)
