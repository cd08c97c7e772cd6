"""Images to learn from, and directions to step in: compared, and taken."""

from __future__ import annotations

import torch
from machines import seeded
from oracle import exact_moments
from torch import Tensor

from restore.learning.rules.contract import Gradient
from restore.priors import RBM

EXACTLY = {"iterations": 5000, "tol": 1e-14, "damping": 0.5}
RATE = 0.4


def some_images(count: int, size: int, seed: int = 5) -> Tensor:
    return torch.bernoulli(torch.full((count, size), 0.4, dtype=torch.float64), generator=seeded(seed))


def assert_close(got: Gradient, wanted: Gradient, atol: float) -> None:
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}")


def free(machine: RBM) -> Gradient:
    """Exact free statistics: the gradient of f = log Z."""
    exact = exact_moments(machine)
    return {"weights.0": exact.pairs, "units.0.bias": exact.visible, "units.1.bias": exact.hidden}


def moved_by(machine: RBM, direction: Gradient, rate: float = RATE) -> RBM:
    return machine.with_parameters({name: value + rate * direction[name] for name, value in machine.parameters.items()})


def grey_images(count: int, size: int, seed: int = 5, dtype: torch.dtype = torch.float64) -> Tensor:
    """Grey levels, of which a third are exactly 0."""
    levels = torch.rand(2, count, size, generator=seeded(seed), dtype=torch.float64)
    return torch.where(levels[0] < 1 / 3, 0.0, levels[1]).to(dtype)
