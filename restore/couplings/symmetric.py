"""The symmetric coupling: every unit of a layer with every other one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from restore.couplings.dense import Dense
from restore.tracing import tracing


@dataclass(frozen=True)
class Symmetric(Dense):
    """One coupling for each pair within a layer, vᵀJv / 2: J (units, units) is symmetric, its diagonal zero.

    The units below and above are the same.

    Raises:
        ValueError: if J is not symmetric with a zero diagonal.

    >>> import torch
    >>> state = torch.ones(1, 2)
    >>> Symmetric(torch.tensor([[0.0, 3.0], [3.0, 0.0]])).interaction(state, state).item()  # each pair counts once
    3.0
    """

    def __post_init__(self) -> None:
        if tracing() or self.weights.shape[0] != self.weights.shape[1]:
            return
        if not bool((self.weights == self.weights.T).all()) or bool(self.weights.diagonal().any()):
            raise ValueError("the coupling must be symmetric and have a diagonal of zeros")

    def down(self, above: Tensor) -> Tensor:
        return self.up(above)

    def slope(self, gradient: Tensor) -> Tensor:
        both = gradient + gradient.T
        return both - both.diagonal().diag()

    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        return super().interaction(below, above) / 2
