"""Gaussian units on all real numbers; hidden ones make a Hopfield model (TAP machine, sec. VIII; appendix B.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.units.quadratic import QuadraticUnits


@dataclass(frozen=True)
class Gaussian(QuadraticUnits):
    """Units with a normal distribution: weight exp(bias x - quadratic x² / 2) for every x.

    If fields leave no positive curvature, the weight has no integral: log-partition and variance are NaN, and a solver
    ends as diverged.

    Attributes:
        bias: shape (n,) or (batch, n).
        quadratic: the inverse variance, positive, same shape.

    >>> units = Gaussian(torch.zeros(1), torch.ones(1))  # mean 0, variance 1
    >>> seen = Fields(torch.tensor([6.0]), torch.tensor([3.0]))  # the value 2, with variance 1/3
    >>> [moment.item() for moment in units.moments(seen)]
    [1.5, 0.25]
    """

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        linear, curvature = self.under(fields)
        variance = 1 / torch.where(curvature > 0, curvature, torch.nan)
        mean = linear * variance
        log_partition = (linear * mean + torch.log(2 * math.pi * variance)) / 2
        return fields.with_presence(log_partition), mean, variance

    def mode(self, fields: Fields) -> Tensor:
        return self.moments(fields)[0]

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        mean, variance = self.moments(fields)
        normal = torch.randn(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
        return mean + variance.sqrt() * normal

    def log_weight(self, values: Tensor) -> Tensor:
        return values * (self.bias - self.quadratic * values / 2)
