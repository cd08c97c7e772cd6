"""Base of real-valued units with weight exp(U x - V x² / 2), on any support (TAP machine, appendix C.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from restore.fields import Fields


@dataclass(frozen=True)
class QuadraticUnits(ABC):
    """Units whose log-partition, mean and variance are computed together.

    Attributes:
        bias: U, shape (n,) or (batch, n).
        quadratic: V, same shape.
    """

    bias: Tensor
    quadratic: Tensor

    @property
    def size(self) -> int:
        return self.bias.shape[-1]

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"bias": self.bias, "quadratic": self.quadratic}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        return replace(self, bias=parameters["bias"], quadratic=parameters["quadratic"])

    def under(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """U and V under extra fields, in one shape, so that a traced iteration keeps the layout of its state."""
        linear, quadratic = torch.broadcast_tensors(self.bias + fields.linear, self.quadratic + fields.quadratic)
        return linear, quadratic

    def tilt(self, fields: Fields) -> Self:
        # A curvature that is one for all images stays so: in a graph of a page it would be millions of numbers.
        shared = self.quadratic + fields.quadratic
        bias, quadratic = (self.bias + fields.linear, shared) if shared.dim() == 1 else self.under(fields)
        return self.with_parameters({"bias": bias, "quadratic": quadratic})

    @abstractmethod
    def law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        """Log-partition, mean and variance under extra fields; shapes (..., n)."""

    def log_partition(self, fields: Fields) -> Tensor:
        return self.law(fields)[0]

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        _, mean, variance = self.law(fields)
        return mean, variance

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"bias": values, "quadratic": -values * values / 2}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        mean, variance = self.moments(fields)
        return {"bias": mean, "quadratic": -(variance + mean * mean) / 2}
