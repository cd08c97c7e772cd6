"""The contract of every kind of coupling.

A coupling joins the units below it with those above, and is linear in its weights: the exponent of a machine has the
term `interaction`, whose derivatives in the units are `up` and `down`, and in the weights `statistics`. Machines,
solvers and learners multiply by nothing else, so that another kind of coupling is a file like `dense.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from torch import Tensor


@dataclass(frozen=True)
class Coupling(ABC):
    """Couplings between all units of two layers.

    Attributes:
        weights: its parameters.
    """

    weights: Tensor

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Number of units below and above."""

    @property
    @abstractmethod
    def matrix(self) -> Tensor:
        """Every coupling of a unit below with one above, (below, above), for solvers with messages over edges."""

    @cached_property
    def squared(self) -> Self:
        """The same with all couplings squared: what variances contribute (TAP)."""
        return self.with_weights(self.weights * self.weights)

    def with_weights(self, weights: Tensor) -> Self:
        """The same kind of coupling with other weights."""
        return replace(self, weights=weights)

    @abstractmethod
    def up(self, below: Tensor) -> Tensor:
        """What states below, (..., units), tell the units above: their fields, (..., units)."""

    @abstractmethod
    def down(self, above: Tensor) -> Tensor:
        """What states above tell the units below, in the same form."""

    @abstractmethod
    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        """Sum over coupled pairs of both states times the coupling; (batch,) of states (batch, units)."""

    @abstractmethod
    def product(self, below: Tensor, above: Tensor) -> Tensor:
        """The slope of `interaction` in the weights, shaped as these, summed over states (batch, units)."""

    def statistics(self, below: Tensor, above: Tensor) -> Tensor:
        """The mean slope of `interaction` in the weights."""
        return self.product(below, above) / len(below)

    @abstractmethod
    def tap_statistics(self, means: tuple[Tensor, Tensor], variances: tuple[Tensor, Tensor]) -> Tensor:
        """The mean slope of log Z in the weights at TAP solutions, given below and above: a aᵀ + W∘(c cᵀ)."""

    @abstractmethod
    def centred(self, below: tuple[Tensor, Tensor], above: tuple[Tensor, Tensor]) -> Self:
        """This, as a gradient g_W, in the gauge of offsets: g_W - μ⊗g_c - g_b⊗λ.

        Args:
            below: of the units there the offset μ and the gradient g_b in the bias, (units,).
            above: λ and g_c.
        """
