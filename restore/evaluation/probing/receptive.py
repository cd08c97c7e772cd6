"""Receptive fields: what each hidden unit looks at, ranked by spread and by activity (TAP machine, Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.priors import BoltzmannMachine, FullyVisible
from restore.solvers.tap import TAP

# The p of the norm that measures spread (Fig. 4).
POWER = 0.1


@dataclass(frozen=True)
class ReceptiveFields:
    """The columns of the first coupling W.

    Attributes:
        weights: shape (H, D).
        spread: see `spread`, (H,).
        activity: mean of each hidden unit, given an image, over images, (H,).
    """

    weights: Tensor
    spread: Tensor
    activity: Tensor


def spread(weights: Tensor) -> Tensor:
    """How evenly each row of weights (H, D) covers its pixels, (H,): 1 where all are of one size, 0 for a row of zeros.

    The l_p norm, p = .1, over the l_2 norm, both of the mean instead of the sum: (mean |w|^p)^(1/p) / (mean w²)^(1/2).
    Without the division a field would rank by the size of its weights more than by how they are spread. One weight
    alone among D has D^(-1/p + 1/2).
    """
    size = weights.double().abs()
    scale = size.amax(1, keepdim=True)
    relative = size / torch.where(scale > 0, scale, 1.0)
    quadratic = (relative**2).mean(1).sqrt()
    return (relative**POWER).mean(1) ** (1 / POWER) / torch.where(quadratic > 0, quadratic, 1.0)


@torch.inference_mode()
def receptive_fields(machine: BoltzmannMachine, images: Tensor) -> ReceptiveFields | None:
    """The receptive fields of the first hidden layer, (H, D); None where there is no hidden layer.

    Args:
        machine: the prior.
        images: shape (N, D), over which activity is averaged.
    """
    if isinstance(machine, FullyVisible):
        return None
    weights = machine.couplings[0].matrix
    # Where a solver starts, the first hidden layer has its means given the image.
    activity = TAP().init(machine, images.to(weights))[1].double().mean(0)
    return ReceptiveFields(weights.T, spread(weights.T), activity)
