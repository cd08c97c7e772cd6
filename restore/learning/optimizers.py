"""The optimizers of torch by name, for parameters of which the couplings decay and the fields do not."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from restore.errors import UsageError

# These want to evaluate a loss themselves, sparse gradients, or matrices only; a learner has no loss, but biases.
_UNFIT = {"optimizer", "lbfgs", "sparseadam", "muon"}

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and name.lower() not in _UNFIT
} | {"adam": torch.optim.AdamW}


def optimizer_of(
    name: str,
    named: Mapping[str, Tensor],
    *,
    rate: float,
    momentum: float,
    weight_decay: float,
    options: Mapping[str, Any],
) -> torch.optim.Optimizer:
    """An optimizer that changes the given tensors in place.

    Args:
        name: of a class in torch.optim, in small letters; "adam" is the one with decoupled weight decay.
        named: parameters; weight decay leaves those alone whose name begins with "units".
        rate: learning rate.
        momentum: for "sgd", and the first beta of those that have betas; others take theirs from `options`.
        weight_decay: where the optimizer has such a thing.
        options: what else its constructor takes; they go before the settings above, except the rate, which changes.

    Raises:
        UsageError: if there is no such optimizer, or it refuses its options.
    """
    if name not in OPTIMIZERS:
        near = difflib.get_close_matches(name, OPTIMIZERS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(OPTIMIZERS))}"
        raise UsageError(f"name {name!r} is no optimizer of torch that fits here; {hint}")
    if "lr" in options:
        raise UsageError("options hold lr, which follows from rate; leave it out")
    taken = inspect.signature(OPTIMIZERS[name]).parameters
    settings: dict[str, Any] = {"lr": rate}
    if name == "sgd":
        settings["momentum"] = momentum
    if "betas" in taken:
        settings["betas"] = (momentum, 0.999)
    if "weight_decay" in taken:
        settings["weight_decay"] = weight_decay
    if "foreach" in taken:
        settings["foreach"] = True
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")]},
        {"params": [value for key, value in named.items() if key.startswith("units")], "weight_decay": 0.0},
    ]
    try:
        return OPTIMIZERS[name](groups, **settings | dict(options))
    except (TypeError, ValueError, RuntimeError) as fault:
        raise UsageError(f"options do not suit {name} ({' '.join(str(fault).split())})") from fault
