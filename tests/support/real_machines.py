"""Small machines of any units, and their exact answers by going through the joint states of all nodes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from machines import Truth, brute_force, seeded
from torch import Tensor

from restore.priors import LayeredPrior
from restore.units import Bernoulli, Gaussian, Spiked, Spin, TruncatedGaussian, Units

# Gauss-Legendre nodes of a unit with real values: far more than its smooth weight takes.
NODES = 24


def random_units(kind: str, size: int, seed: int) -> Units:
    """Units of a kind with random parameters of order one."""
    first, second, third = torch.randn(3, size, generator=seeded(seed), dtype=torch.float64)
    if kind == "bernoulli":
        return Bernoulli(first)
    if kind == "spin":
        return Spin(first)
    slab = TruncatedGaussian(first, 2 * second, -0.5, 1.0)
    return slab if kind == "truncated" else Spiked(third, slab)


def random_machine(*layers: tuple[str, int], scale: float = 1.0, seed: int = 0) -> LayeredPrior:
    """Layers of the kinds and sizes given, with normal couplings of a standard deviation."""
    draw = seeded(seed)
    couplings = tuple(
        scale * torch.randn(low[1], high[1], generator=draw, dtype=torch.float64) for low, high in pairwise(layers)
    )
    return LayeredPrior(tuple(random_units(*layer, seed + 7 * index) for index, layer in enumerate(layers)), couplings)


def exact(machine: LayeredPrior) -> Truth:
    """All answers about a small machine without a batch dimension."""
    return brute_force(machine, nodes=NODES)


def gaussian_machine(sizes: tuple[int, ...], scale: float) -> tuple[LayeredPrior, Tensor, Tensor]:
    """A machine of Gaussian units; its joint precision and bias."""
    draw = seeded(4)
    total = sum(sizes)
    bias, variances = torch.randn(total, generator=draw).double(), 1 + torch.rand(total, generator=draw).double()
    couplings = tuple(scale * torch.randn(pair, generator=draw).double() for pair in pairwise(sizes))
    layers = tuple(Gaussian(*parts) for parts in zip(bias.split(sizes), variances.split(sizes), strict=True))
    precision = torch.diag(variances)
    first = 0
    for coupling in couplings:
        low, high = coupling.shape
        rows, columns = slice(first, first + low), slice(first + low, first + low + high)
        precision[rows, columns], precision[columns, rows] = -coupling, -coupling.T
        first += low
    return LayeredPrior(layers, couplings), precision, bias


def gaussian_answers(precision: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means, covariance and log Z of exp(bias x - x precision x / 2)."""
    covariance = torch.linalg.inv(precision)
    mean = covariance @ bias
    log_z = (len(bias) * np.log(2 * np.pi) - torch.logdet(precision) + bias @ mean) / 2
    return mean, covariance, log_z
