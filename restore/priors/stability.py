"""Whether a machine has a distribution at all.

Units without bounds have weights exp(U x - V x² / 2), and those that are coupled with each other have one of
exp(-xᵀP x / 2) together, P = diag(V) - J, which has an integral only if P is positive definite. Units with bounds add
fields to them, which have bounds too and so do not matter; and what is 0 as an atom leaves a part of P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from restore.priors.machine import BoltzmannMachine

UNSTABLE = (
    "the machine is unstable, its weight has no integral: make the couplings smaller or the quadratic parameters of "
    "its Gaussian units larger"
)


def stable(machine: BoltzmannMachine) -> Tensor:
    """Whether the weight of a machine has an integral, (...,) for parameters of shape (..., n)."""
    unbounded = [index for index, layer in enumerate(machine.layers) if math.isinf(layer.support[1])]
    if not unbounded:
        return torch.ones((), dtype=torch.bool, device=machine.couplings[0].weights.device)
    curvature, couplings = joined(machine, unbounded, "quadratic"), couplings_among(machine, unbounded)
    if not bool(couplings.any()):
        return (curvature > 0).all(-1)
    _, failed = torch.linalg.cholesky_ex((torch.diag_embed(curvature) - couplings).double())
    return failed == 0


def couplings_among(machine: BoltzmannMachine, layers: Sequence[int]) -> Tensor:
    """J of the units of some layers, side by side: symmetric, (n, n)."""
    weights = machine.couplings[0].weights
    sizes = [layer.size if index in layers else 0 for index, layer in enumerate(machine.layers)]
    # One unit after the other is 1 while all others are 0; what its neighbours hear of it are its couplings.
    ones = torch.eye(sum(sizes), dtype=weights.dtype, device=weights.device).split(sizes, 1)
    states = [
        part if index in layers else part.new_zeros(len(part), machine.layers[index].size)
        for index, part in enumerate(ones)
    ]
    return torch.cat([machine.inputs(index, states) for index in layers], 1)


def joined(machine: BoltzmannMachine, layers: Sequence[int], name: str) -> Tensor:
    """A parameter of some layers side by side, (..., n)."""
    values = [machine.layers[index].parameters[name] for index in layers]
    leading = torch.broadcast_shapes(*(value.shape[:-1] for value in values))
    return torch.cat([value.expand(*leading, -1) for value in values], -1)
