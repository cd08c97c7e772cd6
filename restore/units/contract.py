"""The contract of every unit type.

Units are exponential families, and adding fields (see `restore.fields`) keeps them so. All that a solver needs of a
unit is its log-partition under extra fields and the derivatives. The law tested for every unit type: the first and
second derivative of `log_partition` in the linear field are the mean and the variance of `moments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, Self

import torch
from torch import Tensor

from restore.fields import Fields


class Units(Protocol):
    """A layer of n independent units; parameters have shape (n,), or (batch, n) once evidence has been added.

    Every type has a parameter `bias`, which multiplies x.
    """

    @property
    def size(self) -> int:
        """Number of units n."""

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value; infinite if unbounded."""

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """Natural parameters by name; a learner's gradient has the same names and shapes."""

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        """The same kind of units with other natural parameters."""

    def tilt(self, fields: Fields) -> Self:
        """The units with the fields added to their parameters; may add a batch dimension."""

    def log_partition(self, fields: Fields) -> Tensor:
        """Log of the sum (or integral) over x of the unit's weight under extra fields; shape (..., n)."""

    def moments(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Mean and variance under extra fields; shapes (..., n)."""

    def mode(self, fields: Fields) -> Tensor:
        """The most probable value under extra fields; shape (..., n)."""

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        """Draw one value per unit under extra fields; shape (..., n)."""

    def log_weight(self, values: Tensor) -> Tensor:
        """Log of the unnormalised weight of values; shape (..., n)."""

    def statistics(self, values: Tensor) -> Mapping[str, Tensor]:
        """Sufficient statistics of values, one per parameter, under the same names."""

    def expected_statistics(self, fields: Fields) -> Mapping[str, Tensor]:
        """The expected statistics under extra fields."""


def mapped(units: Units, change: Callable[[Tensor], Tensor]) -> Units:
    """The same kind of units after a change of all parameters."""
    return units.with_parameters({name: change(value) for name, value in units.parameters.items()})


def rows_of(units: Units, index: Tensor) -> Units:
    """The units of these rows of a batch; units without a batch dimension stay as they are."""
    return mapped(units, lambda value: value if value.dim() == 1 else value.index_select(0, index))


def for_several(units: Units) -> Units:
    """The same units for several values or fields at a time, (batch, several, n)."""
    return mapped(units, lambda value: value if value.dim() == 1 else value.unsqueeze(-2))
