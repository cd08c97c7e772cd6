"""The dense coupling: every unit below with every unit above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import linear

from restore.couplings.contract import Coupling


@dataclass(frozen=True)
class Dense(Coupling):
    """One weight for each pair of units, vᵀWh: W of shape (units below, units above).

    >>> coupling = Dense(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> first = torch.tensor([1.0, 0.0])
    >>> coupling.up(first).tolist(), coupling.down(first).tolist()
    ([1.0, 2.0], [1.0, 3.0])
    """

    @property
    def sizes(self) -> tuple[int, int]:
        below, above = self.weights.shape
        return below, above

    @property
    def matrix(self) -> Tensor:
        return self.weights

    def up(self, below: Tensor) -> Tensor:
        return below @ self.weights

    def down(self, above: Tensor) -> Tensor:
        # above @ weights.T, without a view: in a traced graph no view of a coupling may enter a loop next to it.
        return linear(above, self.weights)

    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        return ((below @ self.weights) * above).sum(-1)

    def product(self, below: Tensor, above: Tensor, onto: Tensor | None = None) -> Tensor:
        return below.T @ above if onto is None else onto.addmm_(below.T, above)

    def tap_statistics(self, means: tuple[Tensor, Tensor], variances: tuple[Tensor, Tensor]) -> Tensor:
        total = torch.addcmul(self.product(*means), self.weights, self.product(*variances))
        return total / len(means[0])

    def centred(self, below: tuple[Tensor, Tensor], above: tuple[Tensor, Tensor]) -> Self:
        (offset, slope), (offset_above, slope_above) = below, above
        # Both outer products in one pass over the weights.
        outer = torch.stack([offset, slope], 1), torch.stack([slope_above, offset_above])
        return self.with_weights(torch.addmm(self.weights, *outer, alpha=-1))
