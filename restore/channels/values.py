"""What the parameters and the observations of every channel go through."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.tracing import tracing


def require(values: float | Tensor, rule: str, largest: float = math.inf) -> None:
    """Refuse parameters that are not finite numbers in [0, largest]; while a graph is traced none can be looked at.

    Args:
        values: of the parameter.
        rule: what it has to be, in words.
        largest: allowed value.

    Raises:
        UsageError: with the rule and the first value that breaks it.
    """
    if tracing():
        return
    found = torch.as_tensor(values)
    # Written so that NaN fails too.
    sound = (found >= 0) & (found <= largest) & (found < math.inf)
    if not bool(sound.all()):
        raise UsageError(f"{rule}, not {float(found[~sound].flatten()[0])}")


def as_floats(y: Tensor) -> Tensor:
    """An image of whole numbers as floating point: it would cut fields down to whole numbers."""
    return y if y.is_floating_point() else y.to(torch.get_default_dtype())
