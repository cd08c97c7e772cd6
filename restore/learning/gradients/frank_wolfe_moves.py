"""Between two units a growing machine adapts its visible bias, and may drop its worst unit (FW, Alg. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from restore.learning.gradients.hidden_unit import change, factor, most_gaining
from restore.learning.rules.contract import LearnerState
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.units import log_one_plus_exp

if TYPE_CHECKING:
    from restore.learning.rules.frank_wolfe import FrankWolfe

# How many visible states' fields on all hidden units are held at a time.
BLOCK = 10_000

# Sweeps between the samples with which a unit is sought and those by which it is judged, of the same chains.
APART = 5

# Removing a unit must gain this many standard errors.
SURE = 2.0


def settled(state: LearnerState, settings: FrankWolfe, generator: torch.Generator) -> LearnerState:
    """The state after steps on the visible bias, each with new samples (Alg. 1)."""
    mean = state["pixels"].to(state["visible_bias"])
    for _ in range(settings.bias_steps):
        samples = gibbs_steps(machine_of(state), state["samples"], 1, generator)
        bias = state["visible_bias"] + settings.bias_rate * (mean - samples.mean(0))
        state = state | {"samples": samples, "visible_bias": bias}
    return state


def costs(state: LearnerState, settings: FrankWolfe) -> Tensor:
    """The penalty of each unit, in nats; shape (H,), float64."""
    squares = state["weights"].double().square().sum(0) + state["hidden_bias"].double().square()
    return settings.penalty / 2 * squares


def without_worst(
    state: LearnerState, images: Tensor, settings: FrankWolfe, generator: torch.Generator
) -> LearnerState | None:
    """An away step: remove the unit that seems to do the most harm (FW, sec. 3.2).

    Returns:
        The state without it. None if removing it would not raise the likelihood after penalty by more than the sampling
        error, judged by other samples than it was chosen with.
    """
    if state["weights"].shape[1] < 2:
        return None
    machine, share = machine_of(state), _shares(state, images)
    bias = state["hidden_bias"]
    of_images = _factor_means(state, share)
    saved = costs(state, settings)
    fresh = gibbs_steps(machine, state["samples"], APART, generator)
    seen, judged = (
        change(-of_images, -factor(inputs(machine, samples), share, bias)) for samples in (state["samples"], fresh)
    )
    worst = most_gaining(seen, seen.gain + saved, settings.overlap)
    if worst is None:
        return None
    gain, error, overlap = (values[worst] for values in judged)
    if overlap < settings.overlap or gain + saved[worst] <= SURE * error:
        return None
    kept = torch.arange(machine.hidden.size, device=images.device) != worst
    shorter = state | {
        "weights": machine.weights[:, kept],
        "hidden_bias": bias[kept],
        "visible_bias": state["visible_bias"] + share[worst].to(bias) * machine.weights[:, worst],
        "means": state["means"][kept],
        "validation_means": state["validation_means"][kept],
        "samples": fresh,
        "gain": state["gain"] + gain,
    }
    return settled(shorter, settings, generator)


def unit_means(machine: RBM, visible: Tensor) -> Tensor:
    """Mean of softplus(c_j + (Wᵀv)_j) over visible states (N, D), per unit; shape (H,), float64."""
    total = torch.zeros(machine.hidden.size, dtype=torch.float64, device=visible.device)
    for block in visible.split(BLOCK):
        total += log_one_plus_exp(inputs(machine, block)).sum(0, dtype=torch.float64)
    return total / len(visible)


def machine_of(state: Mapping[str, Tensor]) -> RBM:
    return RBM.binary(state["weights"], state["visible_bias"], state["hidden_bias"])


def _shares(state: LearnerState, images: Tensor) -> Tensor:
    """The share of images (N, D) for which each unit is on; (H,), float64."""
    machine = machine_of(state)
    on = [torch.sigmoid(inputs(machine, block)).sum(0, dtype=torch.float64) for block in images.split(BLOCK)]
    return torch.stack(on).sum(0) / len(images)


def _factor_means(state: LearnerState, share: Tensor) -> Tensor:
    """Mean over images of each unit's `hidden_unit.factor`; (H,), float64."""
    return state["means"] - share * (state["pixels"] @ state["weights"].double())


def inputs(machine: RBM, visible: Tensor) -> Tensor:
    """c + Wᵀv for visible states (N, D); shape (N, H)."""
    return machine.hidden_fields(visible).linear + machine.hidden.parameters["bias"]
