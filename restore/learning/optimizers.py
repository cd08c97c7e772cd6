"""The optimizers of torch by name; weight decay acts on couplings only."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# Excluded: optimizers that evaluate a loss themselves, or need sparse gradients or only matrices. Learners have no
# loss, and biases are vectors.
_UNFIT = {"optimizer", "lbfgs", "sparseadam", "muon"}

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and name.lower() not in _UNFIT
} | {"adam": torch.optim.AdamW}


def optimizer_of(
    name: str, named: Mapping[str, Tensor], rate: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    """Make an optimizer that changes the given tensors in place, up the gradient.

    Args:
        name: a class of torch.optim in small letters; "adam" is the one with decoupled weight decay.
        named: parameters; those whose name begins with "units" have no weight decay.
        rate: learning rate.
        momentum: for "sgd", and the first beta of optimizers with betas.
        weight_decay: for optimizers that have it.
    """
    taken = inspect.signature(OPTIMIZERS[name]).parameters
    settings: dict[str, Any] = {"betas": (momentum, 0.999), "weight_decay": weight_decay}
    settings = {key: value for key, value in settings.items() if key in taken}
    # One pass over the parameters where torch has it, else one for each operation.
    settings |= {"maximize": True, "fused" if "fused" in taken else "foreach": True}
    settings |= {"lr": rate} | ({"momentum": momentum} if name == "sgd" else {})
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")]},
        {"params": [value for key, value in named.items() if key.startswith("units")], "weight_decay": 0.0},
    ]
    return OPTIMIZERS[name](groups, **settings)
