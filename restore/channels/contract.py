"""The contract of every channel.

The law tested for each: with the fields of evidence(y), linear·x - quadratic·x²/2 + presence·[x != 0] equals log p(y|x)
up to a constant in x.
Channels add: `first + second` is the channel that applies `first` and then `second`.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from restore.fields import Fields


class Channel(Protocol):
    """An observation model p(y | x) that factorises over pixels; images have shape (batch, D)."""

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """An observation of x; shape (batch, D)."""

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        """log p(y_i | x_i) of every pixel; shape (batch, D)."""

    def evidence(self, y: Tensor) -> Fields:
        """What the observation y says about x, as fields on the visible units."""
