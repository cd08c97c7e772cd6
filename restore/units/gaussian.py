"""Gaussian units on the whole line; hidden ones make a Hopfield model (TAP machine, sec. VIII; appendix B.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.fields import Fields
from restore.units.contract import rows_of


@dataclass(frozen=True)
class Gaussian:
    """Units with weight exp(bias x - quadratic x² / 2) for every x.

    Where fields leave no positive curvature the weight has no integral: log-partition and variance are NaN there, so
    that a solver ends as diverged.

    Attributes:
        bias: shape (n,) or (batch, n).
        quadratic: the inverse variance, positive, same shape.
    """

    bias: Tensor
    quadratic: Tensor

    @property
    def size(self) -> int:
        return self.bias.shape[-1]

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"bias": self.bias, "quadratic": self.quadratic}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Gaussian:
        return Gaussian(parameters["bias"], parameters["quadratic"])

    def tilt(self, fields: Fields) -> Gaussian:
        bias, quadratic = torch.broadcast_tensors(self.bias + fields.linear, self.quadratic + fields.quadratic)
        return Gaussian(bias, quadratic)

    def rows(self, index: Tensor) -> Gaussian:
        return self.with_parameters(rows_of(self.parameters, index))

    def law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        """Log-partition, mean and variance under extra fields; shapes (..., n)."""
        # In one shape, so that an iteration that is traced keeps the layout of its state.
        linear, curvature = torch.broadcast_tensors(self.bias + fields.linear, self.quadratic + fields.quadratic)
        variance = 1 / torch.where(curvature > 0, curvature, torch.nan)
        mean = linear * variance
        log_partition = (linear * mean + torch.log(2 * math.pi * variance)) / 2
        return fields.with_presence(log_partition), mean, variance

    def log_partition(self, fields: Fields) -> Tensor:
        return self.law(fields)[0]

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        _, mean, variance = self.law(fields)
        return mean, variance

    def mode(self, fields: Fields) -> Tensor:
        return self.moments(fields)[0]

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        mean, variance = self.moments(fields)
        normal = torch.randn(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
        return mean + variance.sqrt() * normal

    def log_weight(self, values: Tensor) -> Tensor:
        return values * (self.bias - self.quadratic * values / 2)

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"bias": values, "quadratic": -values * values / 2}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        mean, variance = self.moments(fields)
        return {"bias": mean, "quadratic": -(variance + mean * mean) / 2}
