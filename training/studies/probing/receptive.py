"""Receptive fields: the weights of hidden units to the pixels, ranked by spread and activity (TAP machine, Fig. 4)."""

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
    """The receptive fields of the first hidden layer: the columns of its coupling W.

    Attributes:
        weights: shape (H, D).
        spread: see `spread`, (H,).
        activity: mean of each hidden unit, given an image, over images, (H,).
    """

    weights: Tensor
    spread: Tensor
    activity: Tensor


def spread(weights: Tensor) -> Tensor:
    """How evenly each row of weights (H, D) covers its pixels, (H,): 1 if all have one size, 0 for a row of zeros.

    It is the l_p norm, p = .1, over the l_2 norm, with means instead of sums: (mean |w|^p)^(1/p) / (mean w²)^(1/2).
    Without the division fields would rank by the size of their weights more than by their spread. A single weight
    among D gives D^(-1/p + 1/2).

    >>> everywhere, one_pixel = spread(torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 3.0, 0.0]])).tolist()
    >>> round(everywhere, 4), round(one_pixel, 4)
    (1.0, 0.0)
    """
    size = weights.double().abs()
    scale = size.amax(1, keepdim=True)
    relative = size / torch.where(scale > 0, scale, 1.0)
    quadratic = (relative**2).mean(1).sqrt()
    return (relative**POWER).mean(1) ** (1 / POWER) / torch.where(quadratic > 0, quadratic, 1.0)


@torch.inference_mode()
def receptive_fields(machine: BoltzmannMachine, images: Tensor) -> ReceptiveFields | None:
    """The receptive fields of the first hidden layer, (H, D); None if there is none.

    Args:
        machine: the prior.
        images: shape (N, D), over which activity is averaged.
    """
    if isinstance(machine, FullyVisible):
        return None
    weights = machine.couplings[0].matrix
    # At a solver's start, the first hidden layer has its means given the image.
    activity = TAP().init(machine, images.to(weights))[1].double().mean(0)
    return ReceptiveFields(weights.T, spread(weights.T), activity)
