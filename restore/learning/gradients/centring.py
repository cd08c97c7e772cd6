"""Centred gradients: every unit's mean is subtracted, and grey levels are measured in a unit of their own.

exp(vᵀWh + bᵀv + cᵀh) can be written as exp((v - μ)ᵀW(h - λ) + b'ᵀv + c'ᵀh) for any offsets μ, λ: the same distribution
in other parameters. Gradient ascent in the second set of parameters, translated to the first, is better conditioned
(Melchior, Fischer & Wiskott, "How to center deep Boltzmann machines", JMLR 2016). In the same way the exponent
U x - V x²/2 of a grey pixel can be written with y = (x - m) / u instead of x. Offsets and units never leave this file:
the prior itself always has the plain form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from restore.couplings import Coupling
from restore.learning.rules.contract import Gradient

# The weight of the newest mini-batch in the moving average of the hidden offset.
FORGETTING = 0.01


@dataclass(frozen=True)
class GreyScale:
    """The scale of grey levels: `unit`, about the spread of a pixel given its neighbours; `centre` (D,), typical."""

    unit: float
    centre: Tensor


def centred(
    couplings: Sequence[Coupling], gradient: Gradient, offsets: Sequence[Tensor], grey: GreyScale | None = None
) -> Gradient:
    """Translate the gradient in the centred parameters into an ascent direction in the plain ones.

    With g the plain gradient and ⊗ the outer product: ΔW = g_W - μ⊗g_c - g_b⊗λ, Δb = g_b - ΔW λ, Δc = g_c - ΔWᵀ μ. With
    more layers each loses ΔW λ for the layer above, and ΔWᵀ μ for the one below. For grey pixels ΔW and the first term
    of Δb are divided by u²; ΔV = (g_V + m g_b) / u⁴, and Δb gains m ΔV.

    Offsets are those of every layer, (units,). Without `grey`, levels of layer 0 have no scale of their own.
    """
    moved = dict(gradient)
    if grey is not None:
        slope = gradient["units.0.bias"]
        curvature = (gradient["units.0.quadratic"] + grey.centre * slope) / grey.unit**4
        moved |= {"units.0.bias": slope / grey.unit**2 + grey.centre * curvature, "units.0.quadratic": curvature}
    for index, (below, above) in enumerate(pairwise(offsets)):
        biases = gradient[f"units.{index}.bias"], gradient[f"units.{index + 1}.bias"]
        change = couplings[index].with_weights(gradient[f"weights.{index}"])
        change = change.centred((below, biases[0]), (above, biases[1]))
        scale = 1.0 if grey is None or index else grey.unit**2
        moved[f"weights.{index}"] = change.weights if scale == 1 else change.weights / scale
    return translated(couplings, moved, offsets)


def translated(couplings: Sequence[Coupling], gradient: Gradient, offsets: Sequence[Tensor]) -> Gradient:
    """The same, given ΔW, as from states whose offsets were subtracted: Δb = g_b - ΔW λ, Δc = g_c - ΔWᵀ μ."""
    moved = dict(gradient)
    for index, (below, above) in enumerate(pairwise(offsets)):
        change = couplings[index].with_weights(gradient[f"weights.{index}"])
        moved[f"units.{index}.bias"] = moved[f"units.{index}.bias"] - change.down(above)
        moved[f"units.{index + 1}.bias"] = moved[f"units.{index + 1}.bias"] - change.up(below)
    return moved


def follow(offset: Tensor, batch_mean: Tensor) -> Tensor:
    """Update the moving average of a hidden offset."""
    return offset.lerp(batch_mean, FORGETTING)
