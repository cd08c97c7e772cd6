"""Centring: the gradient taken in the gauge where every unit's mean is subtracted.

exp(vᵀWh + bᵀv + cᵀh) can be written as exp((v - μ)ᵀW(h - λ) + b'ᵀv + c'ᵀh) for any offsets μ, λ: the same
distribution in other parameters. Ascent in the second set of parameters, read back in the first, takes better
conditioned steps (Melchior, Fischer & Wiskott, "How to center deep Boltzmann machines", JMLR 2016). Offsets never leave
this file's two functions: the prior itself is always written in the plain form.
"""

from __future__ import annotations

from torch import Tensor

from restore.learning.contract import Gradient

# Weight of the newest mini-batch in the moving average of the hidden offset.
FORGETTING = 0.01


def centred(gradient: Gradient, visible_offset: Tensor, hidden_offset: Tensor) -> Gradient:
    """The ascent direction in the plain parameters that a centred binary RBM's gradient amounts to.

    With g the plain gradient and ⊗ the outer product: ΔW = g_W - μ⊗g_c - g_b⊗λ, Δb = g_b - ΔW λ, Δc = g_c - ΔWᵀ μ.

    Args:
        gradient: plain gradient of a binary RBM.
        visible_offset: μ, shape (D,).
        hidden_offset: λ, shape (H,).
    """
    visible, hidden = gradient["units.0.bias"], gradient["units.1.bias"]
    weights = gradient["weights.0"].addr(visible_offset, hidden, alpha=-1).addr(visible, hidden_offset, alpha=-1)
    return {
        "weights.0": weights,
        "units.0.bias": visible - weights @ hidden_offset,
        "units.1.bias": hidden - weights.T @ visible_offset,
    }


def follow(offset: Tensor, batch_mean: Tensor) -> Tensor:
    """Moving average of a hidden offset."""
    return offset.lerp(batch_mean, FORGETTING)
