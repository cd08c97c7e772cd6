"""RBMs whose units are all Gaussian: one normal distribution, known in closed form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors.rbm import RBM
from restore.priors.stability import UNSTABLE, couplings_among, joined


def joint_normal(machine: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (...,), mean (..., D + H) and covariance (..., D + H, D + H) of the visible and then the hidden units.

    With V the quadratic parameters and U the biases of both layers, the precision is P = [[V_v, -W], [-Wᵀ, V_h]], and
    the mean is P⁻¹U.

    Raises:
        UsageError: if P is not positive definite.
    """
    bias, quadratic = (joined(machine, (0, 1), name) for name in ("bias", "quadratic"))
    precision = torch.diag_embed(quadratic) - couplings_among(machine, (0, 1))
    factor, failed = torch.linalg.cholesky_ex(precision)
    if bool(failed.any()):
        raise UsageError(UNSTABLE)
    covariance = torch.cholesky_inverse(factor)
    mean = (covariance @ bias.unsqueeze(-1)).squeeze(-1)
    log_root = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_partition = ((bias * mean).sum(-1) + bias.shape[-1] * math.log(2 * math.pi)) / 2 - log_root
    return log_partition, mean, covariance
