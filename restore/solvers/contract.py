"""The contract of every fixed point that a prior can restore with."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from torch import Tensor

from restore.solvers.solution import Solution


class FixedPoint(Protocol):
    """The frozen settings of an iteration: a dataclass with at least these."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def max_iter(self) -> int:
        """Iteration limit per image."""

    @property
    def tol(self) -> float:
        """An image has converged when nothing that is watched moves by more than this in one iteration."""

    @property
    def damping(self) -> float:
        """Share of the old value kept at each update, in [0, 1)."""

    def solve(self, machine: Any, start: Tensor | None = None) -> Solution:
        """Iterate until every image has converged.

        Args:
            machine: the prior under evidence; its fields may have a batch dimension, equal to that of `start`.
            start: visible means to start from, (batch, D); None if the solver finds a start by itself.

        Raises:
            UsageError: if the solver cannot solve such a machine, or takes no start and is given one.
        """
