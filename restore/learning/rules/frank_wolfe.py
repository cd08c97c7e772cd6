"""Frank-Wolfe RBMs: a machine that grows by one hidden unit per round and says when it has enough (FW, Alg. 1).

log p(v | q, b, α) = α E_q(w)[softplus(wᵀv)] + bᵀv - log Z is concave in the distribution q of weights. A round finds
the unit w* that raises the likelihood most, q <- (1 - 1/t) q + δ(w*)/t, lets α grow as t does, and corrects b. (In the
paper it is the unit that raises the linearised likelihood most; see `hidden_unit.objective`.) With α = t every unit has
power 1 and the model is an RBM; with an α of its own it is a fractional one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from restore.errors import TrainingError, UsageError
from restore.learning.course import pixel_means
from restore.learning.gradients.hidden_unit import SCALES, Found, Unit, change, factor, find_unit, most_gaining
from restore.learning.recipes.tables import PriorShape
from restore.learning.rounds import Round
from restore.learning.rules.contract import LearnerState
from restore.learning.rules.rule import InRounds
from restore.priors import RBM, FractionalRBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.solvers.samplers.metropolis import metropolis_steps
from restore.units import log_one_plus_exp

# Visible states whose fields on all hidden units are held at a time.
BLOCK = 10_000

# Sweeps that carry the samples away from the images they start at.
BURN_IN = 50

# Sweeps between the samples that a unit is sought with and those it is judged by, of the same chains.
APART = 5

# Standard errors by which removing a unit has to gain.
SURE = 2.0


@dataclass(frozen=True)
class FrankWolfe(InRounds):
    """Settings of the growth.

    Attributes:
        units: no more than this are added, counting those that an away step removes. (A power above 1 makes several
            units of one in the RBM that is handed over.)
        penalty: λ; half of it times |w|² is what a unit costs, in nats.
        samples: persistent samples of the model, at least 100: fewer say nothing about a unit.
        draws: how many sets of them, a sweep apart, a unit is sought with.
        bias_steps: steps on the visible bias after each unit; each moves the samples by one sweep.
        bias_rate: η of these steps.
        overlap: least effective share of samples that a new unit leaves typical (`hidden_unit.Change`), in (0, 1).
        window: rounds over which the stopping rule looks back.
        least: share of what all units gained the validation images that a window must bring, in [0, 1).
        away_every: rounds between two away steps, which try to remove the worst unit; 0 for none.
        power_rate: step along the gradient in α, per unit; 0 keeps α = t, which makes the outcome an RBM.
    """

    grows: ClassVar[bool] = True

    units: int = 700
    penalty: float = 0.003
    samples: int = 3000
    draws: int = 10
    bias_steps: int = 10
    bias_rate: float = 0.1
    overlap: float = 0.3
    window: int = 40
    least: float = 0.01
    away_every: int = 20
    power_rate: float = 0.0

    def __post_init__(self) -> None:
        lowest = {"units": 1, "samples": 100, "draws": 1, "bias_steps": 1, "window": 1}
        for name, value in lowest.items():
            if getattr(self, name) < value:
                raise UsageError(f"{name} must be at least {value}, not {getattr(self, name)}")
        if not 0 < self.overlap < 1:
            raise UsageError(f"overlap must lie in (0, 1), not {self.overlap}")
        if not 0 <= self.least < 1:
            raise UsageError(f"least must lie in [0, 1), not {self.least}")
        for name in ("penalty", "bias_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        if self.away_every < 0 or not 0 <= self.power_rate < 1:
            raise UsageError(
                f"away_every must not be negative and power_rate lie in [0, 1), not {self.away_every} and "
                f"{self.power_rate}"
            )

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        said = f"the limit of {self.units} units ended growth, not the images held out; raise units for more"
        return said if prior.hidden == "auto" else ""

    def most(self, prior: PriorShape, epochs: int) -> int:
        return self.units if prior.hidden == "auto" else prior.hidden

    def settled(self, prior: PriorShape, passes: int) -> tuple[Self, PriorShape]:
        return (replace(self, units=passes), prior) if prior.grows else (self, replace(prior, hidden=passes))

    def at_work(self, prior: PriorShape, validation: Tensor) -> Growth:
        """Images held out end growth only where the number of units is not told."""
        if prior.hidden == "auto":
            return Growth(self, validation)
        return Growth(replace(self, units=prior.hidden), validation[:0])

    def machine(self, state: Mapping[str, Tensor]) -> RBM:
        return rbm_of(state)


@dataclass(frozen=True)
class Growth:
    """A growing machine on its data: the learner that `restore.learning.rounds` runs.

    Attributes:
        settings: how.
        validation: images (M, D) for the stopping rule; without any, growth goes on to the limit of units.
        start: the machine to grow from; None for one without hidden units.
    """

    settings: FrankWolfe
    validation: Tensor
    start: RBM | None = None

    @property
    def rounds(self) -> int:
        """As many as it takes to reach the limit of units; removed ones are not replaced."""
        return max(0, self.settings.units - (0 if self.start is None else self.start.hidden.size))

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """A machine without hidden units that has the images' pixel means (or the one to start from), and samples."""
        machine = self.start or RBM.binary(
            images.new_zeros(images.shape[1], 0), torch.logit(pixel_means(images)), images.new_zeros(0)
        )
        chosen = torch.randint(len(images), (self.settings.samples,), generator=generator, device=images.device)
        state = {
            "weights": machine.weights,
            "visible_bias": machine.visible.parameters["bias"],
            "hidden_bias": machine.hidden.parameters["bias"],
            "power": images.new_ones(()),
            "pixels": images.mean(0, dtype=torch.float64),
            "validation_pixels": self.validation.mean(0, dtype=torch.float64),
            "means": unit_means(machine, images),
            "validation_means": unit_means(machine, self.validation),
            "gain": torch.zeros((), dtype=torch.float64, device=images.device),
            "gains": torch.zeros(1, dtype=torch.float64, device=images.device),
        }
        return state | {
            "gaps": gap_of(state)[None],
            "samples": moved(prior_of(state), images[chosen], BURN_IN, generator),
        }

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """An away step where it is time for one, then a unit more.

        Raises:
            TrainingError: if there is not even a first unit worth adding.
        """
        settings = self.settings
        monitors: dict[str, float] = {}
        if settings.away_every and len(state["gains"]) % settings.away_every == 0:
            shorter = without_worst(state, images, settings, generator)
            monitors["removed"] = float(shorter is not None)
            state = shorter or state
        machine, sets = prior_of(state), [state["samples"]]
        for _ in range(settings.draws - 1):
            sets.append(moved(machine, sets[-1], 1, generator))
        fresh = moved(machine, sets[-1], APART, generator)
        state = state | {"samples": fresh}
        found = find_unit(
            images, torch.cat(sets), fresh, settings.penalty, float(state["power"]), settings.overlap, generator
        )
        if found is None and not state["weights"].shape[1]:
            raise TrainingError(
                "no hidden unit gains more than its penalty: the images show little beyond the mean of each pixel; "
                "lower penalty, or train on other images"
            )
        if found is None:
            return Round(state, monitors, "no further unit gains more than its penalty")
        validation = unit_means(_single(found.unit), self.validation)
        longer = state | {
            "weights": torch.cat([state["weights"], found.unit.weights[:, None]], 1),
            "hidden_bias": torch.cat([state["hidden_bias"], found.unit.bias[None]]),
            "visible_bias": state["visible_bias"] - state["power"] * found.fitting.share * found.unit.weights,
            "means": torch.cat([state["means"], unit_means(_single(found.unit), images)]),
            "validation_means": torch.cat([state["validation_means"], validation]),
            "gain": state["gain"] + found.fitting.gain,
        }
        longer = settled(longer, settings, generator)
        if settings.power_rate:
            longer = repowered(longer, images, settings)
        return self._judged(longer, found, monitors)

    def _judged(self, state: LearnerState, found: Found, monitors: dict[str, float]) -> Round:
        """The round that ends in a state: what to log, and whether the stopping rule fires."""
        gaps = torch.cat([state["gaps"], gap_of(state)[None]])
        gains = torch.cat([state["gains"], state["gain"][None]])
        monitors |= {
            "units": state["weights"].shape[1],
            "objective": found.fitting.objective,
            "gain": found.fitting.gain,
            "overlap": found.fitting.overlap,
            "size": found.unit.square**0.5,
            "evaluations": found.evaluations,
            "power": float(state["power"]),
        }
        if len(self.validation):
            gained = gains - gaps
            monitors |= {"gap": float(gaps[-1]), "validation_gain": float(gained[-1] - gained[0])}
        verdict = stopping_verdict(gaps, gains, self.settings.window, self.settings.least)
        return Round(state | {"gaps": gaps, "gains": gains}, monitors, verdict)


def gap_of(state: LearnerState) -> Tensor:
    """Mean log-probability of training images less that of validation images, in nats; log Z is the same for both."""
    of_bias = state["visible_bias"].double() @ (state["pixels"] - state["validation_pixels"])
    return of_bias + state["power"].double() * (state["means"] - state["validation_means"]).sum()


def stopping_verdict(gaps: Tensor, gains: Tensor, window: int, least: float) -> str:
    """Why growth should stop, or nothing.

    The gap between the mean log-probabilities of training and validation images needs no log Z. Validation images gain
    what training images gain less what the gap grows. Growth ends where they gain too little, or nothing any more. (The
    paper stops when the gap "largely increases", which it never does where there are many images.)

    Args:
        gaps: gap before the first round and after each, in nats; NaN where there are no validation images.
        gains: what units added and removed, and powers, have gained the training images by then; the little that steps
            on the visible bias gain is left out, for its estimate is mostly noise.
        window: rounds to look back.
        least: share of the whole gain that a window must bring.
    """
    if len(gaps) <= window:
        return ""
    of_validation = gains - gaps
    last, whole = (float(of_validation[-1] - of_validation[before]) for before in (-1 - window, 0))
    # Written so that nothing follows from NaN.
    if not last <= least * max(whole, 0.0):
        return ""
    return (
        f"the last {window} units raised the mean log-likelihood of validation images by {last:.2f} nats, "
        f"all units by {whole:.1f}"
    )


def prior_of(state: Mapping[str, Tensor]) -> RBM | FractionalRBM:
    """The machine of a state: an RBM where every unit has power 1."""
    machine, power = _machine(state), state["power"]
    return machine if float(power) == 1 else FractionalRBM(machine, power.expand(machine.hidden.size))


def rbm_of(state: Mapping[str, Tensor]) -> RBM:
    """The RBM of a state; one that comes near where the powers are not 1 (eq. 12)."""
    prior = prior_of(state)
    return prior if isinstance(prior, RBM) else prior.approximation()


def moved(prior: RBM | FractionalRBM, samples: Tensor, sweeps: int, generator: torch.Generator) -> Tensor:
    """Samples (S, D) of a prior after some sweeps more."""
    if isinstance(prior, FractionalRBM):
        return metropolis_steps(prior, samples, sweeps, generator)[0]
    return gibbs_steps(prior, samples, sweeps, generator)


def settled(state: LearnerState, settings: FrankWolfe, generator: torch.Generator) -> LearnerState:
    """The state after steps on the visible bias, each with samples of its own (Alg. 1)."""
    mean = state["pixels"].to(state["visible_bias"])
    for _ in range(settings.bias_steps):
        samples = moved(prior_of(state), state["samples"], 1, generator)
        bias = state["visible_bias"] + settings.bias_rate * (mean - samples.mean(0))
        state = state | {"samples": samples, "visible_bias": bias}
    return state


def repowered(state: LearnerState, images: Tensor, settings: FrankWolfe) -> LearnerState:
    """The state after a step along the gradient in α, no longer than gains and leaves the samples typical.

    The visible bias gives way as it does to a unit that is added; see `hidden_unit.factor`.
    """
    machine, share = _machine(state), _shares(state, images)
    of_images = _factor_means(state, share).sum()
    of_samples = factor(_inputs(machine, state["samples"]), share, state["hidden_bias"], 1.0).sum(1)
    cost, power = costs(state, settings).sum(), state["power"].double()
    rise = (of_images - of_samples.mean() - cost) / machine.hidden.size
    steps = power * (torch.exp(settings.power_rate * rise) - 1) * of_samples.new_tensor(SCALES)
    outcome = change(steps * of_images, steps * of_samples[:, None])
    best = most_gaining(outcome, outcome.gain - steps * cost, settings.overlap)
    if best is None:
        return state
    return state | {
        "power": (power + steps[best]).to(state["power"]),
        "visible_bias": state["visible_bias"] - (steps[best] * (machine.weights.double() @ share)).to(machine.weights),
        "gain": state["gain"] + outcome.gain[best],
    }


def costs(state: LearnerState, settings: FrankWolfe) -> Tensor:
    """What the penalty takes for each unit of power 1, in nats; shape (H,), float64."""
    squares = state["weights"].double().square().sum(0) + state["hidden_bias"].double().square()
    return settings.penalty / 2 * squares


def without_worst(
    state: LearnerState, images: Tensor, settings: FrankWolfe, generator: torch.Generator
) -> LearnerState | None:
    """An away step: the state without the unit that seems to do the most harm (FW, sec. 3.2).

    Returns:
        None if all units pull their weight: if to remove that one would not, beyond the sampling error of later samples
        than those it was chosen with, raise the likelihood after penalty.
    """
    if state["weights"].shape[1] < 2:
        return None
    machine, share = _machine(state), _shares(state, images)
    bias, power = state["hidden_bias"], float(state["power"])
    of_images = power * _factor_means(state, share)
    saved = power * costs(state, settings)
    fresh = moved(prior_of(state), state["samples"], APART, generator)
    seen, judged = (
        change(-of_images, -factor(_inputs(machine, samples), share, bias, power))
        for samples in (state["samples"], fresh)
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
        "visible_bias": state["visible_bias"] + power * share[worst].to(bias) * machine.weights[:, worst],
        "means": state["means"][kept],
        "validation_means": state["validation_means"][kept],
        "samples": fresh,
        "gain": state["gain"] + gain,
    }
    return settled(shorter, settings, generator)


def unit_means(prior: RBM | FractionalRBM, visible: Tensor) -> Tensor:
    """Mean of softplus(c_j + (Wᵀv)_j) over visible states (N, D), per unit; shape (H,), float64."""
    machine = prior.machine if isinstance(prior, FractionalRBM) else prior
    total = torch.zeros(machine.hidden.size, dtype=torch.float64, device=visible.device)
    for block in visible.split(BLOCK):
        total += log_one_plus_exp(_inputs(machine, block)).sum(0, dtype=torch.float64)
    return total / len(visible)


def _machine(state: Mapping[str, Tensor]) -> RBM:
    """The machine of a state, all powers left aside."""
    return RBM.binary(state["weights"], state["visible_bias"], state["hidden_bias"])


def _shares(state: LearnerState, images: Tensor) -> Tensor:
    """The share of images (N, D) that each unit is on for; (H,), float64."""
    machine = _machine(state)
    on = [torch.sigmoid(_inputs(machine, block)).sum(0, dtype=torch.float64) for block in images.split(BLOCK)]
    return torch.stack(on).sum(0) / len(images)


def _factor_means(state: LearnerState, share: Tensor) -> Tensor:
    """Mean over images of `hidden_unit.factor` of each unit, at power 1; (H,), float64."""
    return state["means"] - share * (state["pixels"] @ state["weights"].double())


def _inputs(machine: RBM, visible: Tensor) -> Tensor:
    """c + Wᵀv of visible states (N, D); shape (N, H)."""
    return machine.hidden_fields(visible).linear + machine.hidden.parameters["bias"]


def _single(unit: Unit) -> RBM:
    """A machine with this unit alone."""
    return RBM.binary(unit.weights[:, None], torch.zeros_like(unit.weights), unit.bias[None])
