"""The optimizers by name; weight decay acts on couplings only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from restore.learning.recipe.spec import Optimizer

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {"sgd": torch.optim.SGD, "adam": torch.optim.AdamW}


def optimizer_of(settings: Optimizer, named: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """Make an optimizer that changes named tensors in place, up the gradient; those of units have no weight decay.

    The momentum of [optimizer] is the first beta of Adam.
    """
    momentum = settings.momentum
    own: dict[str, Any] = {"momentum": momentum} if settings.name == "sgd" else {"betas": (momentum, 0.999)}
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")]},
        {"params": [value for key, value in named.items() if key.startswith("units")], "weight_decay": 0.0},
    ]
    # Fused: one pass over the parameters.
    own |= {"lr": settings.rate, "weight_decay": settings.weight_decay, "maximize": True, "fused": True}
    return OPTIMIZERS[settings.name](groups, **own)


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """The learning rate after a share `progress` of training."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left
