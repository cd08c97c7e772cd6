"""Fields: shifts of natural parameters. Evidence, biases and messages between units all have this form.

A field multiplies the weight of a unit's value x by exp(linear * x - quadratic * x**2 / 2 + presence * [x != 0]).
Two sources of information about a unit are combined by adding their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Fields:
    """A linear and a quadratic field for every unit of a layer.

    Attributes:
        linear: shape (*units) or (batch, *units).
        quadratic: broadcastable with `linear`; zero where a source has no information on the scale of x.
        presence: broadcastable with `linear`: the log-odds that a source adds to all values other than 0, or None. Only
            observations have one.

    >>> (Fields(torch.tensor([1.0, -2.0])) + Fields(torch.tensor([0.5, 0.5]))).linear.tolist()
    [1.5, -1.5]
    """

    linear: Tensor
    quadratic: Tensor = field(default_factory=lambda: torch.zeros(()))
    presence: Tensor | None = None

    def __add__(self, other: Fields) -> Fields:
        presence = self.presence if other.presence is None else self.with_presence(other.presence)
        return Fields(self.linear + other.linear, self.quadratic + other.quadratic, presence)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Fields:
        """The same fields after a change of their tensors."""
        linear, quadratic = change(self.linear), change(self.quadratic)
        return Fields(linear, quadratic, None if self.presence is None else change(self.presence))

    def with_presence(self, log_weight: Tensor) -> Tensor:
        """Add `presence` to the log-weight of values other than 0."""
        return log_weight if self.presence is None else log_weight + self.presence


def stacked(parts: Sequence[Fields]) -> Fields:
    """Fields of several batches, one after the other.

    Args:
        parts: at least one; `linear` has shape (batch, n).
    """
    presence = None
    if any(part.presence is not None for part in parts):
        presence = torch.cat([part.with_presence(torch.zeros_like(part.linear)) for part in parts])
    # A default field is a zero on the processor.
    quadratic = torch.cat([part.quadratic.to(part.linear).expand_as(part.linear) for part in parts])
    return Fields(torch.cat([part.linear for part in parts]), quadratic, presence)
