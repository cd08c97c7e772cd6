"""The contract of every kind of coupling.

A coupling joins the units below it with those above, and is linear in its weights. It adds the term `interaction` to a
machine's exponent, whose derivatives are `up` and `down` in the units, and `statistics` in the weights. Machines,
solvers and learners use only these, so that another kind of coupling is one file like `dense.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from torch import Tensor


@dataclass(frozen=True)
class Coupling(ABC):
    """Couplings between all units of two layers.

    Attributes:
        weights: its parameters.
    """

    weights: Tensor

    # True if the same weights fit images of any size.
    any_size: ClassVar[bool] = False

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Number of units below and above."""

    @property
    @abstractmethod
    def matrix(self) -> Tensor:
        """The coupling of every unit below with every unit above, (below, above), for solvers by messages."""

    @cached_property
    def squared(self) -> Self:
        """The same with all couplings squared: the factor of variances in TAP."""
        return self.with_weights(self.weights * self.weights)

    def with_weights(self, weights: Tensor) -> Self:
        return replace(self, weights=weights)

    @abstractmethod
    def up(self, below: Tensor) -> Tensor:
        """The fields, (..., units), that states below, (..., units), give the units above."""

    @abstractmethod
    def down(self, above: Tensor) -> Tensor:
        """The fields that states above give the units below."""

    @abstractmethod
    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        """The sum over coupled pairs of both states times their coupling; (batch,) for states (batch, units)."""

    @abstractmethod
    def product(self, below: Tensor, above: Tensor, onto: Tensor | None = None) -> Tensor:
        """The derivative of `interaction` in the weights, in their shape, summed over states (batch, units).

        It is added in place to `onto`, if that is given: weights are many numbers.
        """

    def statistics(self, below: Tensor, above: Tensor) -> Tensor:
        """The derivative of `interaction` in the weights, averaged over states."""
        # States have fewer numbers than weights.
        return self.product(below / len(below), above)

    def slope(self, gradient: Tensor) -> Tensor:
        """The derivative in the free parameters, from that in each entry of the weights."""
        return gradient

    @abstractmethod
    def tap_statistics(self, means: tuple[Tensor, Tensor], variances: tuple[Tensor, Tensor]) -> Tensor:
        """The derivative of log Z in the weights, averaged over TAP solutions: a aᵀ + W∘(c cᵀ)."""

    @abstractmethod
    def centred(self, below: tuple[Tensor, Tensor], above: tuple[Tensor, Tensor]) -> Self:
        """Centre a gradient g_W: g_W - μ⊗g_c - g_b⊗λ.

        Args:
            below: the offset μ and the gradient g_b in the bias of the units below, (units,).
            above: the same of the units above: λ and g_c.
        """
