"""Base of units with two values: their only parameter is the bias, which multiplies x."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from restore.fields import Fields


@dataclass(frozen=True)
class TwoValuedUnits(ABC):
    """Units with weight exp(bias * x), where x is one of two values.

    Attributes:
        bias: shape (n,) or (batch, n).
    """

    bias: Tensor

    @property
    def size(self) -> int:
        return self.bias.shape[-1]

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return {"bias": self.bias}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        return replace(self, bias=parameters["bias"])

    @abstractmethod
    def log_odds(self, fields: Fields) -> Tensor:
        """Log-odds of the higher value under extra fields; shape (..., n)."""

    @abstractmethod
    def mean(self, fields: Fields) -> Tensor:
        """The mean under extra fields; shape (..., n)."""

    @abstractmethod
    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Mean and variance under extra fields; shapes (..., n)."""

    def draw(self, fields: Fields, generator: torch.Generator | None) -> Tensor:
        """1 for each unit that takes its higher value, 0 for the others; shape (..., n)."""
        # Comparing with uniform numbers takes a quarter of the time of torch.bernoulli on a CPU.
        share = torch.sigmoid(self.log_odds(fields))
        uniform = torch.rand(share.shape, dtype=share.dtype, device=share.device, generator=generator)
        # In place: the answers are as many numbers.
        return uniform.lt_(share)

    def log_weight(self, values: Tensor) -> Tensor:
        return self.bias * values

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        return {"bias": values}

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        return {"bias": self.mean(fields)}
