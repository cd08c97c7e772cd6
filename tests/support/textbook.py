"""Machines under evidence, and log p(y | x) of channels as a textbook writes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from machines import forest_edges, random_rbm, seeded
from torch import Tensor

from restore.channels import BitFlip, Channel, GaussianNoise, Occlusion, SaltAndPepper
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers.messages import bp_kernel

needs_kernel = pytest.mark.skipif(bp_kernel.library() is None, reason="no C compiler that builds the fused kernel")


kinds = pytest.mark.parametrize("kind", ["sum", "max", "mixed"])


# --- the textbook ---


def total(logs: np.ndarray, axis: int = -1) -> np.ndarray:
    """Log of a sum."""
    return np.logaddexp.reduce(logs, axis)


# --- machines and forms ---


def under_evidence(machine: RBM, images: int, strength: float = 1.0, seed: int = 5, both: bool = True) -> RBM:
    drawn = [
        Fields(strength * torch.randn(images, layer.size, generator=seeded(seed + at), dtype=torch.float64))
        for at, layer in enumerate(machine.layers)
    ]
    return machine.tilt(*(drawn if both else drawn[:1]))


def rounded(machine: RBM) -> RBM:
    """With parameters that float32 can hold, so that both precisions have the same problem."""
    return machine.to(torch.float32).to(torch.float64)


def forest(visible: int, hidden: int, seed: int, scale: float = 2.0, bias: float = 1.0) -> RBM:
    """A machine whose weights that are not zero form a random forest."""
    machine = random_rbm(visible, hidden, scale=scale, bias=bias, seed=seed)
    kept = torch.rand(visible, hidden, generator=seeded(seed)) < 0.9
    return rounded(with_values(machine, machine.weights * forest_edges(visible, hidden, seed) * kept))


def with_values(machine: RBM, weights: Tensor | None = None, **biases: Tensor) -> RBM:
    named = machine.parameters
    return machine.with_parameters(
        {
            "weights.0": named["weights.0"] if weights is None else weights,
            "units.0.bias": biases.get("visible", named["units.0.bias"]),
            "units.1.bias": biases.get("hidden", named["units.1.bias"]),
        }
    )


def numpy_of(values: Tensor | None) -> np.ndarray:
    assert values is not None
    return values.double().numpy()


def agree(found: Tensor | np.ndarray | None, wanted: np.ndarray | Tensor, within: float) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=within)


# --- log p(y | x) of each pixel by definition: what the evidence of channels is tested against ---


def log_likelihood(channel: Channel, y: Tensor, x: Tensor) -> Tensor:
    """log p(y_i | x_i) of observations y of images x, (batch, D): densities of noise, probabilities of all else."""
    if isinstance(channel, Occlusion):
        # A hidden pixel shows the paint with certainty, whatever it was.
        hidden = torch.as_tensor(channel.hidden, device=x.device)
        return torch.where(hidden, torch.zeros_like(x), log_likelihood(channel.noise, y, x))
    if isinstance(channel, BitFlip):
        p = _like(channel.probability, x)
        return torch.where(y == x, torch.log1p(-p), torch.log(p))
    if isinstance(channel, GaussianNoise):
        return _of_noise(_like(channel.sigma, x), y, x)
    assert isinstance(channel, SaltAndPepper)
    p, sigma = _like(channel.probability, x), _like(channel.noise.sigma, x)
    through = torch.log1p(-p) + _of_noise(sigma, y, x)
    # A pixel seen exactly may show black or white without an impulse.
    both = torch.where((sigma == 0) & (y == x), torch.log1p(-p / 2), torch.log(p / 2))
    return torch.where(((y == 0) | (y == 1)) & (p > 0), both, through)


def _of_noise(sigma: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The log-density of y; where sigma is 0, its log-probability."""
    density = -((y - x) / sigma).square() / 2 - sigma.log() - math.log(2 * math.pi) / 2
    return torch.where(sigma > 0, density, torch.where(y == x, 0.0, -math.inf).to(x.dtype))


def _like(values: object, x: Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=x.dtype, device=x.device)
