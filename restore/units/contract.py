"""The contract of every unit type.

A layer of units is an exponential family per unit. Adding fields (see `restore.fields`) keeps it in the family, so all
a solver ever asks is the log-partition function under extra fields and its derivatives. The law tested for every unit:
the first and second derivative of `log_partition` in the linear field are the mean and the variance of `moments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

import torch
from torch import Tensor

from restore.fields import Fields


def rows_of(parameters: Mapping[str, Tensor], index: Tensor) -> dict[str, Tensor]:
    """Parameters (batch, n) of the given rows of the batch; those without a batch dimension as they are."""
    return {name: value if value.dim() == 1 else value.index_select(0, index) for name, value in parameters.items()}


class Units(Protocol):
    """A layer of n independent units; parameters have shape (n,), or (batch, n) once evidence has been added.

    Every type has a parameter `bias`, which multiplies x itself.
    """

    @property
    def size(self) -> int:
        """Number of units n."""

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value; infinite where there is none."""

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """Natural parameters by name; a learner's gradient has the same names and shapes."""

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The same kind of units with other natural parameters."""

    def tilt(self, fields: Fields) -> Self:
        """The units with the fields absorbed into their parameters; may add a batch dimension."""

    def rows(self, index: Tensor) -> Self:
        """The units of the given rows of the batch; units without a batch dimension are returned as they are."""

    def log_partition(self, fields: Fields) -> Tensor:
        """Log of the sum (or integral) over x of the unit's weight under extra fields; shape (..., n)."""

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Mean and variance under extra fields; shapes (..., n)."""

    def mode(self, fields: Fields) -> Tensor:
        """The most probable value under extra fields; shape (..., n)."""

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        """One value per unit under extra fields, drawn with `generator`; shape (..., n)."""

    def log_weight(self, values: Tensor) -> Tensor:
        """Log of the unnormalised weight of values; shape (..., n)."""

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        """Sufficient statistics of values, one per parameter, under the same names."""

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        """Their expectation under extra fields."""
