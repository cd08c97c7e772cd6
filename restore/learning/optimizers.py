"""The optimizers of torch by name; weight decay acts on couplings only."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from restore.learning.recipe.spec import Optimizer

# Excluded: optimizers that evaluate a loss themselves, or need sparse gradients or only matrices. Learners have no
# loss, and biases are vectors.
_UNFIT = {"optimizer", "lbfgs", "sparseadam", "muon"}

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and name.lower() not in _UNFIT
} | {"adam": torch.optim.AdamW}


def optimizer_of(settings: Optimizer, named: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """Make an optimizer that changes named tensors in place, up the gradient; those of units have no weight decay.

    The momentum of [optimizer] is also the first beta of optimizers with betas.
    """
    kind = OPTIMIZERS[settings.name]
    taken = inspect.signature(kind).parameters
    options: dict[str, Any] = {"betas": (settings.momentum, 0.999), "weight_decay": settings.weight_decay}
    options = {key: value for key, value in options.items() if key in taken}
    # One pass over the parameters where torch has it, else one for each operation.
    options |= {"maximize": True, "fused" if "fused" in taken else "foreach": True, "lr": settings.rate}
    options |= {"momentum": settings.momentum} if settings.name == "sgd" else {}
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")]},
        {"params": [value for key, value in named.items() if key.startswith("units")], "weight_decay": 0.0},
    ]
    return kind(groups, **options)


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """The learning rate after a share `progress` of training."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left
