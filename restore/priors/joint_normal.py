"""RBMs of Gaussian units on both sides: one normal distribution, known in closed form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.rbm import RBM

UNSTABLE = (
    "the machine is unstable, its weight has no integral: make the couplings smaller or the quadratic parameters of "
    "its Gaussian units larger"
)


def joint_normal(machine: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (...,), mean (..., D + H) and covariance (..., D + H, D + H) over the visible and then the hidden units.

    With V the quadratic parameters and U the biases of both layers, the precision is P = [[V_v, -W], [-Wᵀ, V_h]] and
    the mean P⁻¹U.

    Raises:
        UsageError: if P is not positive definite.
    """
    bias, quadratic = (_joined(machine, name) for name in ("bias", "quadratic"))
    size = machine.visible.size
    precision = torch.diag_embed(quadratic)
    precision[..., :size, size:] = -machine.weights
    precision[..., size:, :size] = -machine.weights.T
    factor, failed = torch.linalg.cholesky_ex(precision)
    if bool(failed.any()):
        raise UsageError(UNSTABLE)
    covariance = torch.cholesky_inverse(factor)
    mean = (covariance @ bias.unsqueeze(-1)).squeeze(-1)
    log_root = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_partition = ((bias * mean).sum(-1) + bias.shape[-1] * math.log(2 * math.pi)) / 2 - log_root
    return log_partition, mean, covariance


def _joined(machine: RBM, name: str) -> Tensor:
    """A parameter of both layers side by side, (..., D + H)."""
    values = [layer.parameters[name] for layer in machine.layers]
    leading = torch.broadcast_shapes(*(value.shape[:-1] for value in values))
    return torch.cat([value.expand(*leading, -1) for value in values], -1)
