"""Fields: shifts of natural parameters, the one currency for evidence, biases and cavities.

A field multiplies the weight of a unit's value x by exp(linear * x - quadratic * x**2 / 2). Whatever was observed about
an image, and whatever neighbours say about a unit, arrives in this form, so that combining two sources is an addition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Fields:
    """A linear and a quadratic field for every unit of a layer.

    Attributes:
        linear: shape (*units) or (batch, *units).
        quadratic: broadcastable with `linear`; zero where a source says nothing about the scale of x.
    """

    linear: Tensor
    quadratic: Tensor = field(default_factory=lambda: torch.zeros(()))

    def __add__(self, other: Fields) -> Fields:
        return Fields(self.linear + other.linear, self.quadratic + other.quadratic)
