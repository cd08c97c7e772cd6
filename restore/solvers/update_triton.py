"""The end of an update of binary units on a GPU: their new mean and variance, in one pass over memory.

As operations of torch it would be some thirty passes, slower than the matrix products before it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Units that a program updates.
UNITS_PER_PROGRAM = 1024


@triton.jit
def bernoulli(  # type: ignore[no-untyped-def]
    linear, squared, bias, means, variances, new_means, new_variances, count, width, stride, damping,
    REACTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The moments of units under W a and (W∘W) c, damped; the units of row n have their biases at n * stride."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    old = tl.load(means + at, mask=there)
    odds = tl.load(bias + at // width * stride + at % width, mask=there) + tl.load(linear + at, mask=there)
    if REACTS:
        # A = -(W∘W) c and B = W a + A a make the log-odds B - A/2.
        odds -= tl.load(squared + at, mask=there) * (old - 0.5)
    mean = 1 / (1 + tl.exp(-odds))
    tl.store(new_means + at, mean * (1 - damping) + old * damping, mask=there)
    variance = tl.load(variances + at, mask=there)
    tl.store(new_variances + at, mean * (1 - mean) * (1 - damping) + variance * damping, mask=there)


def updated(
    bias: Tensor, linear: Tensor, squared: Tensor | None, mean: Tensor, variance: Tensor, damping: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of binary units after an update.

    Args:
        bias: (n,) or (batch, n), float32, as all the others.
        linear: W a, (batch, n).
        squared: (W∘W) c, (batch, n); None in mean field.
        mean, variance: those before, (batch, n).
        damping: share of them that is kept.
    """
    new_mean, new_variance = (torch.empty_like(linear, memory_format=torch.contiguous_format) for _ in range(2))
    parts = [part.contiguous() for part in (linear, linear if squared is None else squared, bias, mean, variance)]
    stride = bias.shape[-1] if bias.dim() == 2 and len(bias) > 1 else 0
    bernoulli[(triton.cdiv(linear.numel(), UNITS_PER_PROGRAM),)](
        *parts, new_mean, new_variance, linear.numel(), linear.shape[-1], stride, float(damping),
        REACTS=squared is not None, BLOCK=UNITS_PER_PROGRAM,
    )  # fmt: skip
    return new_mean, new_variance
