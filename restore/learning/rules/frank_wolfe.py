"""Frank-Wolfe RBMs: a machine that grows by one hidden unit per round and decides when it has enough (FW, Alg. 1).

log p(v | q, b, α) = α E_q(w)[softplus(wᵀv)] + bᵀv - log Z is concave in the distribution q of weights. A round finds
the unit w* that raises the likelihood most, sets q <- (1 - 1/t) q + δ(w*)/t, lets α grow as t does, and corrects b. (In
the paper it is the unit that raises the linearised likelihood most: `LinearFrankWolfe`.) With α = t the model is an
RBM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from restore.errors import TrainingError, require
from restore.learning.gradients.hidden_unit import Addition, Unit, change, factor, find_unit, most_gaining
from restore.learning.gradients.independent import pixel_means
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import InRounds, LearnerState, Round
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.units import log_one_plus_exp

# Sweeps that lead the samples away from the images they start at.
BURN_IN = 50

# The number of visible states whose fields on all hidden units are held at a time.
STATES_AT_ONCE = 10_000

# Sweeps between the samples with which a unit is sought and those by which it is judged, of the same chains.
SWEEPS_APART = 5

# Removing a unit must gain this many standard errors.
REMOVAL_ERRORS = 2.0


@dataclass(frozen=True)
class FrankWolfe(InRounds):
    """Settings and constants of the growth.

    Attributes:
        units: the most units added, including those that an away step removes.
        penalty: λ; a unit costs half of it times |w|², in nats.
    """

    grows: ClassVar[bool] = True
    # What a unit is sought by, in `hidden_unit.OBJECTIVES`.
    sought_by: ClassVar[str] = "gain"

    # Persistent samples of the model. Fewer than 100 would say nothing about a unit.
    samples: int = field(default=3000, init=False)
    # Sets of samples, a sweep apart, with which a unit is sought; with one set it would be fitted to chance.
    draws: int = field(default=10, init=False)
    # Steps on the visible bias after each unit, and their rate η; each moves the samples by one sweep.
    bias_steps: int = field(default=10, init=False)
    bias_rate: float = field(default=0.1, init=False)
    # The least effective share of samples that a new unit must leave typical (`hidden_unit.Change`), in (0, 1). With
    # fewer, the samples no longer tell the unit's gain.
    overlap: float = field(default=0.3, init=False)
    # The stopping rule looks back over this many rounds, which must bring at least this share, in [0, 1), of what all
    # units gained for the validation images.
    window: int = field(default=40, init=False)
    least: float = field(default=0.01, init=False)
    # Rounds between two away steps, which try to remove the worst unit; one takes about as long as a round.
    away_every: int = field(default=20, init=False)

    units: int = 700
    penalty: float = 0.003

    def __post_init__(self) -> None:
        require(self.units >= 1, f"units must be at least 1, not {self.units}")
        require(0 < self.penalty < float("inf"), f"penalty must be positive, not {self.penalty}")

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        words = f"the limit of {self.units} units ended growth, not the images held out; raise units for more"
        return words if prior.hidden == "auto" else ""

    def at_work(self, prior: PriorShape, validation: Tensor) -> Growth:
        """Held-out images end the growth only if the number of units is not given."""
        if prior.hidden == "auto":
            return Growth(self, validation)
        return Growth(replace(self, units=prior.hidden), validation[:0])

    def machine(self, state: Mapping[str, Tensor]) -> RBM:
        return machine_of(state)


class LinearFrankWolfe(FrankWolfe):
    """Frank-Wolfe whose units are sought by their gain to first order, as in the paper (eq. 9)."""

    sought_by: ClassVar[str] = "linear"


@dataclass(frozen=True)
class Growth:
    """A growing machine: the learner that `restore.learning.loop` runs.

    Validation images (M, D) are for the stopping rule; without any, growth ends at the limit of units. It begins with
    no hidden unit, or with those of `start`.
    """

    settings: FrankWolfe
    validation: Tensor
    start: RBM | None = None

    @property
    def rounds(self) -> int:
        """Enough to reach the limit of units; removed ones are not replaced."""
        return self.settings.units - (self.start.hidden.size if self.start else 0)

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """The start, or a machine without hidden units that has the images' pixel means; and its samples."""
        none = images.new_zeros(images.shape[1], 0), torch.logit(pixel_means(images)), images.new_zeros(0)
        machine = self.start or RBM.binary(*none)
        chosen = torch.randint(len(images), (self.settings.samples,), generator=generator, device=images.device)
        state = {
            "weights": machine.weights,
            "visible_bias": machine.visible.parameters["bias"],
            "hidden_bias": machine.hidden.parameters["bias"],
            "pixels": images.mean(0, dtype=torch.float64),
            "validation_pixels": self.validation.mean(0, dtype=torch.float64),
            "means": unit_means(machine, images),
            "validation_means": unit_means(machine, self.validation),
            "gain": torch.zeros((), dtype=torch.float64, device=images.device),
            "gains": torch.zeros(1, dtype=torch.float64, device=images.device),
        }
        return state | {
            "gaps": gap_of(state)[None],
            "samples": gibbs_steps(machine, images[chosen], BURN_IN, generator),
        }

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """Do an away step if it is due, then add a unit; a TrainingError if not even a first one is worth adding."""
        settings = self.settings
        monitors: dict[str, float] = {}
        if len(state["gains"]) % settings.away_every == 0:
            shorter = without_worst(state, images, settings, generator)
            monitors["removed"] = float(shorter is not None)
            state = shorter or state
        machine = machine_of(state)
        sets = [state["samples"]]
        for _ in range(settings.draws - 1):
            sets.append(gibbs_steps(machine, sets[-1], 1, generator))
        fresh = gibbs_steps(machine, sets[-1], SWEEPS_APART, generator)
        state = state | {"samples": fresh}
        addition = find_unit(
            images, torch.cat(sets), fresh, settings.penalty, settings.overlap, generator, settings.sought_by
        )
        if addition is None and not state["weights"].shape[1]:
            fault = "no hidden unit gains more than its penalty: the images show little beyond the mean of each pixel"
            raise TrainingError(f"{fault}; lower penalty, or train on other images")
        if addition is None:
            return Round(state, monitors, "no further unit gains more than its penalty")
        validation = unit_means(_single(addition.unit), self.validation)
        longer = state | {
            "weights": torch.cat([state["weights"], addition.unit.weights[:, None]], 1),
            "hidden_bias": torch.cat([state["hidden_bias"], addition.unit.bias[None]]),
            "visible_bias": state["visible_bias"] - addition.fitting.share * addition.unit.weights,
            "means": torch.cat([state["means"], unit_means(_single(addition.unit), images)]),
            "validation_means": torch.cat([state["validation_means"], validation]),
            "gain": state["gain"] + addition.fitting.gain,
        }
        return self._judged(settled(longer, settings, generator), addition, monitors)

    def _judged(self, state: LearnerState, addition: Addition, monitors: dict[str, float]) -> Round:
        """End a round: make its log, and apply the stopping rule."""
        gaps = torch.cat([state["gaps"], gap_of(state)[None]])
        gains = torch.cat([state["gains"], state["gain"][None]])
        monitors |= {
            "units": state["weights"].shape[1],
            "objective": addition.fitting.objective,
            "gain": addition.fitting.gain,
            "overlap": addition.fitting.overlap,
            "size": addition.unit.square**0.5,
            "evaluations": addition.evaluations,
        }
        if len(self.validation):
            gained = gains - gaps
            monitors |= {"gap": float(gaps[-1]), "validation_gain": float(gained[-1] - gained[0])}
        verdict = stopping_verdict(gaps, gains, self.settings.window, self.settings.least)
        return Round(state | {"gaps": gaps, "gains": gains}, monitors, verdict)


def gap_of(state: LearnerState) -> Tensor:
    """Mean log-probability of training images minus that of validation images, in nats; log Z cancels."""
    of_bias = state["visible_bias"].double() @ (state["pixels"] - state["validation_pixels"])
    return of_bias + (state["means"] - state["validation_means"]).sum()


def stopping_verdict(gaps: Tensor, gains: Tensor, window: int, least: float) -> str:
    """The reason to stop growth, as validation images gain too little; empty without one.

    They gain what training images gain minus the growth of the gap between the mean log-probabilities, which needs no
    log Z. (The paper stops when the gap "largely increases", which never happens with many images.) Gaps and gains are
    those before the first round and after each, in nats; gaps are NaN without validation images. The small gains from
    steps on the visible bias are left out, as mostly noise. The last rounds, `window` of them, must bring a least
    share.
    """
    if len(gaps) <= window:
        return ""
    of_validation = gains - gaps
    last, whole = (float(of_validation[-1] - of_validation[before]) for before in (-1 - window, 0))
    # Written so that NaN never stops growth.
    if not last <= least * max(whole, 0.0):
        return ""
    return (
        f"the last {window} units raised the mean log-likelihood of validation images by {last:.2f} nats, "
        f"all units by {whole:.1f}"
    )


def _single(unit: Unit) -> RBM:
    return RBM.binary(unit.weights[:, None], torch.zeros_like(unit.weights), unit.bias[None])


def settled(state: LearnerState, settings: FrankWolfe, generator: torch.Generator) -> LearnerState:
    """The state after steps on the visible bias, each with new samples (Alg. 1)."""
    mean = state["pixels"].to(state["visible_bias"])
    for _ in range(settings.bias_steps):
        samples = gibbs_steps(machine_of(state), state["samples"], 1, generator)
        bias = state["visible_bias"] + settings.bias_rate * (mean - samples.mean(0))
        state = state | {"samples": samples, "visible_bias": bias}
    return state


def without_worst(
    state: LearnerState, images: Tensor, settings: FrankWolfe, generator: torch.Generator
) -> LearnerState | None:
    """An away step: remove the unit that seems to do the most harm (FW, sec. 3.2).

    None if removing it would not raise the likelihood after penalty by more than the sampling error, judged by other
    samples than it was chosen with.
    """
    if state["weights"].shape[1] < 2:
        return None
    machine = machine_of(state)
    bias = state["hidden_bias"]
    weights = state["weights"].double()
    # The share of images for which each unit is on, the mean of its factor over images, and its penalty.
    on = [torch.sigmoid(inputs(machine, block)).sum(0, dtype=torch.float64) for block in images.split(STATES_AT_ONCE)]
    share = torch.stack(on).sum(0) / len(images)
    of_images = state["means"] - share * (state["pixels"] @ weights)
    saved = settings.penalty / 2 * (weights.square().sum(0) + bias.double().square())
    fresh = gibbs_steps(machine, state["samples"], SWEEPS_APART, generator)
    estimate, judged = (
        change(-of_images, -factor(inputs(machine, samples), share, bias)) for samples in (state["samples"], fresh)
    )
    worst = most_gaining(estimate, estimate.gain + saved, settings.overlap)
    if worst is None:
        return None
    gain, error, overlap = (values[worst] for values in judged)
    if overlap < settings.overlap or gain + saved[worst] <= REMOVAL_ERRORS * error:
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
    for block in visible.split(STATES_AT_ONCE):
        total += log_one_plus_exp(inputs(machine, block)).sum(0, dtype=torch.float64)
    return total / len(visible)


def machine_of(state: Mapping[str, Tensor]) -> RBM:
    return RBM.binary(state["weights"], state["visible_bias"], state["hidden_bias"])


def inputs(machine: RBM, visible: Tensor) -> Tensor:
    """c + Wᵀv for visible states (N, D); shape (N, H)."""
    return machine.hidden_fields(visible).linear + machine.hidden.parameters["bias"]
