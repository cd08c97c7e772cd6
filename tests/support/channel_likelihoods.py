"""log p(y | x) of each pixel by definition: what the evidence of channels is tested against."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restore.channels import BitFlip, Channel, GaussianNoise, Occlusion, SaltAndPepper


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
