"""Check that a machine has a distribution at all.

Unbounded units have weights exp(U x - V x² / 2). Those that are coupled with each other have the joint weight
exp(-xᵀP x / 2), P = diag(V) - J, which has an integral only if P is positive definite. Bounded units only add bounded
fields to them, which do not matter; atoms at 0 only remove rows and columns of P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from restore.priors.machine import BoltzmannMachine

UNSTABLE = (
    "the machine is unstable, its weight has no integral: make the couplings smaller or the quadratic parameters of "
    "its Gaussian units larger"
)


def stable(machine: BoltzmannMachine) -> Tensor:
    """True where a machine's weight has an integral; (...,) for parameters of shape (..., n)."""
    unbounded = [index for index, layer in enumerate(machine.layers) if math.isinf(layer.support[1])]
    if not unbounded:
        return torch.ones((), dtype=torch.bool, device=machine.couplings[0].weights.device)
    curvature = joined(machine, unbounded, "quadratic")
    # Layers are coupled with their neighbours alone; the one layer of a fully visible machine with itself.
    apart = len(machine.layers) > 1 and all(above - below > 1 for below, above in pairwise(unbounded))
    if apart or not bool((couplings := couplings_among(machine, unbounded)).any()):
        return (curvature > 0).all(-1)
    _, failed = torch.linalg.cholesky_ex((torch.diag_embed(curvature) - couplings).double())
    return failed == 0


def couplings_among(machine: BoltzmannMachine, layers: Sequence[int]) -> Tensor:
    """The couplings J among the units of some layers, side by side: symmetric, (n, n)."""
    weights = machine.couplings[0].weights
    sizes = [layer.size if index in layers else 0 for index, layer in enumerate(machine.layers)]
    # Each unit in turn is 1 while all others are 0; the fields of its neighbours are then its couplings.
    ones = torch.eye(sum(sizes), dtype=weights.dtype, device=weights.device).split(sizes, 1)
    states = [
        part if index in layers else part.new_zeros(len(part), machine.layers[index].size)
        for index, part in enumerate(ones)
    ]
    return torch.cat([machine.inputs(index, states) for index in layers], 1)


def joined(machine: BoltzmannMachine, layers: Sequence[int], name: str) -> Tensor:
    units = [machine.layers[index] for index in layers]
    leading = torch.broadcast_shapes(*(layer.parameters[name].shape[:-1] for layer in units))
    return torch.cat([layer.parameters[name].expand(*leading, layer.size) for layer in units], -1)
