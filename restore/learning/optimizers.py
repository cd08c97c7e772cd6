"""The optimizers by name; weight decay acts on couplings only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from restore.learning.recipe.spec import Optimizer

# The factors of X, X Xᵀ X and (X Xᵀ)² X that bring all singular values near 1 in this number of iterations.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5

# The rate of biases under Muon, relative to that of weights.
OF_BIASES = 0.3


class Muon(torch.optim.AdamW):
    """Orthogonalised momentum for the weights, the first group, and Adam for all others (Jordan et al., 2024).

    A tensor of weights is a matrix with a row for each feature. It moves by U Vᵀ, where U S Vᵀ is the singular value
    decomposition of its momentum, so that all directions are learnt at the same pace. `torch.optim.Muon` does the same
    in bfloat16, which takes eight times as long on processors without it.

    >>> weights = torch.zeros(2, 2)
    >>> weights.grad = torch.tensor([[3.0, 0.0], [0.0, 0.01]])
    >>> Muon([{"params": [weights]}], lr=1.0, betas=(0.9, 0.999), weight_decay=0.0, maximize=True).step()
    >>> [round(value, 1) for value in weights.diagonal().tolist()]
    [0.7, 1.2]
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        weights = self.param_groups[0]
        momentum = weights["betas"][0]
        rate = weights["lr"]
        for value in weights["params"]:
            memory = self.state[value]
            memory.setdefault("step", torch.zeros(()))  # without it AdamW restores no state
            mean = memory.setdefault("momentum", torch.zeros_like(value))
            mean.lerp_(value.grad, 1 - momentum)
            direction = orthogonal(value.grad.lerp(mean, momentum).flatten(1))
            scale = math.sqrt(max(1.0, direction.shape[0] / direction.shape[1]))
            step = rate * scale if weights["maximize"] else -rate * scale
            value.mul_(1 - rate * weights["weight_decay"]).add_(direction.view_as(value), alpha=step)
            # What has no gradient is not moved again.
            value.grad = None
        super().step()


def orthogonal(matrix: Tensor) -> Tensor:
    """The matrix U S Vᵀ with singular values near 1, between .7 and 1.2 unless they are tiny."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    estimate = wide / wide.norm().clamp_min(torch.finfo(wide.dtype).tiny)
    first, third, fifth = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = estimate @ estimate.T
        estimate = first * estimate + (third * square + fifth * square @ square) @ estimate
    return estimate if wide is matrix else estimate.T


OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.AdamW,
    "muon": Muon,
}


def optimizer_of(settings: Optimizer, named: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """Make an optimizer that changes named tensors in place, up the gradient; those of units have no weight decay.

    The momentum of [optimizer] is the first beta of Adam. `share` is the rate of a group relative to the recipe's.
    """
    momentum = settings.momentum
    own: dict[str, Any] = {"momentum": momentum} if settings.name == "sgd" else {"betas": (momentum, 0.999)}
    groups: list[dict[str, Any]] = [
        {"params": [value for key, value in named.items() if not key.startswith("units")], "share": 1.0},
        {
            "params": [value for key, value in named.items() if key.startswith("units")],
            "share": OF_BIASES if settings.name == "muon" else 1.0,
            "weight_decay": 0.0,
        },
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
