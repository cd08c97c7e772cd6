"""The optimizers of torch by name, for parameters of which the couplings decay and the fields do not."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# These want to evaluate a loss themselves, sparse gradients, or matrices only; a learner has no loss, but biases.
_UNFIT = {"optimizer", "lbfgs", "sparseadam", "muon"}

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and name.lower() not in _UNFIT
} | {"adam": torch.optim.AdamW}


def optimizer_of(
    name: str, named: Mapping[str, Tensor], rate: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    """An optimizer that changes the given tensors in place.

    Args:
        name: of a class in torch.optim, in small letters; "adam" is the one with decoupled weight decay.
        named: parameters; weight decay leaves those alone whose name begins with "units".
        rate: learning rate.
        momentum: for "sgd", and the first beta of those that have betas.
        weight_decay: where the optimizer has such a thing.
    """
    taken = inspect.signature(OPTIMIZERS[name]).parameters
    settings: dict[str, Any] = {"betas": (momentum, 0.999), "weight_decay": weight_decay, "foreach": True}
    settings = {key: value for key, value in settings.items() if key in taken}
    settings |= {"lr": rate} | ({"momentum": momentum} if name == "sgd" else {})
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")]},
        {"params": [value for key, value in named.items() if key.startswith("units")], "weight_decay": 0.0},
    ]
    return OPTIMIZERS[name](groups, **settings)
