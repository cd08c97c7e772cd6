"""log Z of small machines, summed over every state of the smaller layer."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from restore.console import Meter
from restore.errors import ModelError, UsageError
from restore.priors import RBM

# 2**25 states of 784 pixels take about a minute on one core; every further unit doubles the time.
MAX_SUMMED = 25

# States that are summed at a time, as a power of two: tens of megabytes with 784 units on the other side.
CHUNK_EXPONENT = 13


class Model(Protocol):
    """Any prior over binary images whose unnormalised probability is known; likelihoods need no more."""

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) of images (batch, D) with log p(v) = -F(v) - log Z; shape (batch,)."""


def unnormalised(model: Model, images: Tensor) -> Tensor:
    """-F(v), the log of the unnormalised probability of binary images (N, D); shape (N,), float64.

    Raises:
        ModelError: if a probability is not finite.
    """
    values = -model.free_energy(images).double()
    if not bool(values.isfinite().all()):
        raise ModelError("the model's free energy is not finite for some images; train it again")
    return values


def chunks(model: Model, pixels: int) -> int:
    """Number of chunks of states in the sum for log Z.

    Raises:
        UsageError: if there are more than MAX_SUMMED units to sum over.
    """
    units = _summed(model, pixels)[1]
    if units > MAX_SUMMED:
        fault = f"an exact likelihood is a sum over 2^{units} states; at most 2^{MAX_SUMMED} can be summed"
        raise UsageError(f"{fault}: choose another likelihood")
    return 2 ** max(units - CHUNK_EXPONENT, 0)


@torch.inference_mode()
def exact_log_partition(model: Model, like: Tensor, meter: Meter = lambda done, note="": None) -> float:
    """log Z of a prior over binary images, accumulated in float64.

    Args:
        model: any prior over binary images.
        like: images (..., D) of the model's type and device, only to give these and D.
        meter: receives the chunks of states done.

    Raises:
        UsageError: if there are more than MAX_SUMMED units to sum over.
    """
    summed, units = _summed(model, like.shape[-1])
    bits = torch.arange(units, device=like.device)
    parts = []
    for index in range(chunks(model, like.shape[-1])):
        codes = torch.arange(2 ** min(units, CHUNK_EXPONENT), device=like.device) + index * 2**CHUNK_EXPONENT
        states = ((codes[:, None] >> bits) & 1).to(like.dtype)
        # A number, not a tensor: small tensors that stay would fragment the memory that large ones free.
        parts.append(float(torch.logsumexp(unnormalised(summed, states), 0)))
        meter(index + 1)
    return float(torch.logsumexp(torch.tensor(parts, dtype=torch.float64), 0))


def _summed(model: Model, pixels: int) -> tuple[Model, int]:
    """The model whose visible states to sum over, with their number of units: an RBM's smaller layer."""
    if isinstance(model, RBM) and model.hidden.size < pixels:
        return model.transposed(), model.hidden.size
    return model, pixels
