"""Stochastic spectral descent: steepest ascent under norms that bound log Z (Carlson, Cevher & Carin, AISTATS 2015).

Steepest ascent along a gradient s under a norm ‖·‖ is the #-operator, s# = argmax_x ⟨s, x⟩ - ‖x‖²/2. Bounds on the
curvature of f = log Z over binary units say how far a step may go; all follow from Var(x) <= E[x²]:

    f(W + Δ) <= f(W) + ⟨∇f, Δ⟩ + (DH/2) ‖Δ‖², the Schatten-∞ (spectral) norm, since |vᵀΔh| <= √D √H ‖Δ‖;
    f(b + δ) <= f(b) + ⟨∇f, δ⟩ + (D²/2) ‖δ‖², the maximum norm, since |δᵀv| <= D ‖δ‖; and H²/2 for c.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from restore.learning.rules.contract import Gradient
from restore.learning.rules.contrastive import ContrastiveDivergence


def sharp_matrix(gradient: Tensor) -> Tensor:
    """‖s‖_1 U Vᵀ of a matrix s = U Σ Vᵀ (..., D, H), ‖s‖_1 = tr Σ: the #-operator of the Schatten-∞ norm.

    Directions in which s is zero, up to rounding, stay zero: any choice there is an argmax, too.
    """
    left, values, right = torch.linalg.svd(gradient, full_matrices=False)
    floor = torch.finfo(values.dtype).eps * max(gradient.shape[-2:]) * values[..., :1]
    return (left * (values > floor).to(values.dtype).unsqueeze(-2)) @ right * values.sum(-1)[..., None, None]


def sharp_vector(gradient: Tensor) -> Tensor:
    """‖s‖_1 sign(s) of a vector s (..., n): the #-operator of the maximum norm."""
    return gradient.sign() * gradient.abs().sum(-1, keepdim=True)


def spectral(gradient: Gradient) -> Gradient:
    """The ascent direction in a binary RBM with this plain gradient.

    A step of rate 1/(DH) reaches the top of each of the three bounds above, hence the factors H/D and D/H for the
    biases. (A third of that rate is safe for all three at once; in practice rates are far larger.)
    """
    visible, hidden = gradient["weights.0"].shape[-2:]
    return {
        "weights.0": sharp_matrix(gradient["weights.0"]),
        "units.0.bias": sharp_vector(gradient["units.0.bias"]) * (hidden / visible),
        "units.1.bias": sharp_vector(gradient["units.1.bias"]) * (visible / hidden),
    }


@dataclass(frozen=True)
class SpectralDescent(ContrastiveDivergence):
    """SSD: contrastive divergence with steepest ascent under other norms, for mini-batches of about 1,000."""

    any_units: ClassVar[bool] = False

    centring: bool = field(default=False, init=False)
    inner_steps: int = field(default=1, init=False)

    def direction(self, gradient: Gradient) -> Gradient:
        return spectral(gradient)
