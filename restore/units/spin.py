"""Spins: units with values -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.units.bernoulli import log_one_plus_exp
from restore.units.two_valued import TwoValuedUnits


@dataclass(frozen=True)
class Spin(TwoValuedUnits):
    """Units that are -1 or +1, with weight exp(bias * x). Because x² = 1, a quadratic field only changes log Z.

    Attributes:
        bias: half the log-odds of x = 1, shape (n,) or (batch, n).

    >>> mean, _ = Spin(torch.tensor([0.0, 1.0])).moments(Fields(torch.zeros(2)))  # tanh of the bias
    >>> [round(value, 2) for value in mean.tolist()]
    [0.0, 0.76]
    """

    @property
    def support(self) -> tuple[float, float]:
        return -1.0, 1.0

    def tilt(self, fields: Fields) -> Spin:
        return Spin(self.bias + fields.linear)

    def log_odds(self, fields: Fields) -> Tensor:
        return 2 * (self.bias + fields.linear)

    def log_partition(self, fields: Fields) -> Tensor:
        bias = self.bias + fields.linear
        return fields.with_presence(bias.abs() + log_one_plus_exp(-2 * bias.abs()) - fields.quadratic / 2)

    def mean(self, fields: Fields) -> Tensor:
        return torch.tanh(self.bias + fields.linear)

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        # From the probabilities of both values: 1 - tanh² would lose the variance of a strong field to rounding.
        log_odds = self.log_odds(fields)
        return self.mean(fields), 4 * torch.sigmoid(log_odds) * torch.sigmoid(-log_odds)

    def mode(self, fields: Fields) -> Tensor:
        log_odds = self.log_odds(fields)
        return 2 * (log_odds > 0).to(log_odds.dtype) - 1

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        return 2 * self.draw(fields, generator) - 1
