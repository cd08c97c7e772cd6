"""Maximum pseudo-likelihood for fully visible machines: block successive lower-bound maximisation, and its rivals.

BSLM (Nguyen & Wood 2016) goes through all biases and couplings. For each it maximises a parabola that touches the
log-pseudo-likelihood at the present parameters and lies below it elsewhere, so no step can lower the likelihood. The
paper takes the couplings in lexicographic order. Updates of couplings without a common unit do not affect each other,
so here they are taken in the rounds of a round-robin tournament, each round at once: the same algorithm in another
order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor

from restore.errors import TrainingError, UsageError, require
from restore.learning.gradients.independent import PSEUDO_COUNT
from restore.learning.gradients.pseudo_likelihood import (
    Objective,
    Sample,
    Spins,
    list_units,
    refuse_unbounded,
    separated_units,
)
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import InRounds, LearnerState, Round
from restore.priors import FullyVisible

# The number of pairs of steps and gradient changes that quasi-Newton steps remember.
QUASI_NEWTON_PAIRS = 10

# A quasi-Newton step must gain this share of what the gradient promises (Armijo's rule), or it is halved.
ARMIJO = 1e-4

# The most halvings: less than rounding is left then.
STEP_HALVINGS = 30

# Quasi-Newton steps end when one promises this share of the tolerance.
NEGLIGIBLE_GAIN = 1e-3

# The size of the blocks of a sweep, in numbers, so that they stay in a processor's caches.
SWEEP_BLOCK = 2**15

# The fewest images at a time.
NARROWEST = 64

# A coupling of spins this large makes odds of e^40 to 1, which no number of images can show: it grows to infinity.
HUGE = 10.0


def tournament(units: int) -> Tensor:
    """Rounds in which every unit meets every other once, and none meets two (the circle method): (rounds, 2, pairs)."""
    ring = units - 1 + units % 2
    turn = torch.arange(ring)[:, None]
    step = torch.arange(1, (ring + 1) // 2)
    rounds = torch.stack([(turn + step) % ring, (turn - step) % ring], 1)
    if units % 2:
        return rounds
    fixed = torch.stack([turn, torch.full_like(turn, units - 1)], 1)
    return torch.cat([rounds, fixed], 2)


def sweep(objective: Objective, at: Spins) -> Spins:
    """One sweep of BSLM (eq. 2.4, 2.7): all biases, which do not affect each other, then all couplings.

    Along one coordinate the objective curves at most as much as the parabola, so no step lowers it.
    """
    sample, l2 = objective.sample, objective.l2
    scale = 1 / (1 + l2)
    couplings, bias = at.couplings.clone(), at.bias.clone()
    predicted = objective.fields(at).tanh_()
    change = scale * (sample.means - predicted @ sample.shares - l2 * bias)
    bias += change
    predicted = _moved(predicted, change[:, None].tanh())
    width = max(NARROWEST, SWEEP_BLOCK // len(bias))
    parts = [
        [part.contiguous() for part in block.split(width, -1)] for block in (sample.spins, predicted, sample.shares)
    ]
    unit = other = torch.empty(0, dtype=torch.int64, device=bias.device)
    shift = bias.new_empty(0, 1)
    for first, second in tournament(len(bias)).to(bias.device):
        before, unit, other_before, other = unit, torch.cat([first, second]), other, torch.cat([second, first])
        explained = bias.new_zeros(len(unit))
        for spins, answers, shares in zip(*parts, strict=True):
            # Changes of the round before are applied here, where the block is in the caches.
            moved = _moved(answers.index_select(0, before), spins.index_select(0, other_before).mul_(shift))
            answers.index_copy_(0, before, moved)
            explained.addmv_(spins.index_select(0, other).mul_(answers.index_select(0, unit)), shares)
        explained = explained.unflatten(0, (2, -1)).mean(0)
        change = scale * (sample.pairs[first, second] - explained - l2 * couplings[first, second])
        couplings[first, second] += change
        couplings[second, first] += change
        shift = change.tanh().repeat(2)[:, None]
    return Spins(couplings, bias)


def _moved(predicted: Tensor, shift: Tensor) -> Tensor:
    """tanh(f + δ) from tanh f and tanh δ: a division is much faster than another tanh."""
    one = torch.ones((), dtype=shift.dtype, device=shift.device)
    return (predicted + shift).div_(torch.addcmul(one, predicted, shift))


def climb(objective: Objective, start: Spins, steps: int, tol: float = 0.0) -> Spins:
    """Take quasi-Newton steps (L-BFGS) in all parameters at once, each only if it raises the objective.

    They end early if a step promises much less than `tol`. A step raises the objective if its value says so, or if the
    slope along it is not negative at its end, which detects gains below rounding. Between sweeps these are so-called
    spacer steps, with which the sweeps still converge (Luenberger & Ye, Linear and Nonlinear Programming, sec. 7.9).
    """
    at = start
    here = objective.evaluate(start)
    known: deque[tuple[Spins, Spins]] = deque(maxlen=QUASI_NEWTON_PAIRS)
    # The step length that is safe for the curvature in any direction.
    first = 1 / (objective.sample.curvature + objective.l2)
    for _ in range(steps):
        direction = _quasi_newton(here.gradient, known, first)
        promised = float(direction.dot(here.gradient))
        length = 1.0
        if promised < NEGLIGIBLE_GAIN * tol:
            break
        for _ in range(STEP_HALVINGS):
            reached = at.plus(direction, length)
            there = objective.evaluate(reached)
            if there.value > here.value + ARMIJO * length * promised or float(direction.dot(there.gradient)) >= 0:
                break
            length /= 2
        else:
            break
        moved = reached.plus(at, -1.0)
        turned = here.gradient.plus(there.gradient, -1.0)
        # Positive except for rounding.
        if float(moved.dot(turned)) > 0:
            known.append((moved, turned))
        at, here = reached, there
    return at


def _quasi_newton(gradient: Spins, known: deque[tuple[Spins, Spins]], first: float) -> Spins:
    """The gradient times an approximate inverse of minus the second derivatives (L-BFGS's two-loop recursion)."""
    direction = gradient
    shares = []
    for moved, turned in reversed(known):
        share = float(moved.dot(direction) / moved.dot(turned))
        direction = direction.plus(turned, -share)
        shares.append(share)
    scale = first
    if known:
        moved, turned = known[-1]
        scale = float(moved.dot(turned) / turned.dot(turned))
    direction = Spins(scale * direction.couplings, scale * direction.bias)
    for (moved, turned), share in zip(known, reversed(shares), strict=True):
        direction = direction.plus(moved, share - float(turned.dot(direction) / moved.dot(turned)))
    return direction


@dataclass(frozen=True)
class PseudoLikelihoodAscent(InRounds, ABC):
    """Base of learners by pseudo-likelihood; a round goes over all images.

    Attributes:
        tol: a round that raises the mean log-pseudo-likelihood of an image (in nats) by less is the last.
        rounds: the most rounds.
        l2: penalty, see `Objective`. Without it there may be no maximum, for instance if a pixel never changes.
        precision: of all but sums over images; in float32 differences below 1e-7 of the objective's size are noise.
    """

    tol: float = 1e-9
    rounds: int = 100
    l2: float = 0.0
    precision: Literal["float32", "float64"] = "float64"

    @property
    def restores_with(self) -> Mapping[str, Any]:
        # On couplings learnt from images TAP oscillates with the usual damping, mean field does not. Modes would need
        # Gibbs chains with a step per pixel.
        return {"solver": "mean_field", "damping": 0.5, "modes": 0, "starts": 1}

    def __post_init__(self) -> None:
        require(self.rounds >= 1, f"rounds must be at least 1, not {self.rounds}")
        if not 0 <= self.tol < math.inf or not 0 <= self.l2 < math.inf:
            raise UsageError(f"tol and l2 must be 0 or positive, not {self.tol} and {self.l2}")

    def cut_short(self, prior: PriorShape, rounds: int) -> str:
        return f"the limit of {rounds} rounds was reached while the log-pseudo-likelihood still rose; raise rounds"

    def at_work(self, prior: PriorShape, validation: Tensor) -> Self:
        return self

    def machine(self, state: Mapping[str, Tensor]) -> FullyVisible:
        return FullyVisible.from_spins(*spins_of(state)).to(torch.float32)

    @abstractmethod
    def improve(self, objective: Objective, at: Spins) -> Spins: ...

    def objective(self, images: Tensor) -> Objective:
        return Objective(Sample.of(images, getattr(torch, self.precision)), self.l2)

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """Units without couplings that have the images' means; a TrainingError where no maximum is proved."""
        objective = self.objective(images)
        if not self.l2:
            refuse_unbounded(images)
        means = objective.sample.means * (len(images) / (len(images) + PSEUDO_COUNT))
        return state_at(objective, Spins(torch.zeros_like(objective.sample.pairs), means.atanh()))

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        return self.round(self.objective(images), state)

    def round(self, objective: Objective, state: LearnerState) -> Round:
        """One round; a TrainingError if there is proof that no maximum exists, or the parameters diverged."""
        before = float(state["value"])
        after = state_at(objective, self.improve(objective, spins_of(state)))
        gained = float(after["value"]) - before
        if not math.isfinite(gained):
            raise TrainingError("the log-pseudo-likelihood is no longer finite; lower the step")
        if not self.l2:
            proof = separated_units(objective, spins_of(after))
            if len(proof):
                fault = f"{list_units(proof)} can be predicted from the others without one error"
                why = f"in {objective.sample.count} images: the pseudo-likelihood has no maximum"
                raise TrainingError(f"{fault} {why}; set [learner] l2, such as 1e-3, or give more images")
        monitors = {
            "log_pseudo_likelihood": float(after["value"]),
            "gained": gained,
            "largest_coupling": float(after["couplings"].abs().max()),
        }
        verdict = ""
        if gained < self.tol:
            verdict = f"the log-pseudo-likelihood rose by {gained:.3g}, less than {self.tol:g}"
        if not self.l2 and monitors["largest_coupling"] > HUGE:
            verdict = (
                f"a coupling of {monitors['largest_coupling']:.3g} in spins means that these images hardly bound it, "
                "if at all; set [learner] l2, such as 1e-3"
            )
        return Round(after, monitors, verdict)


@dataclass(frozen=True)
class BSLM(PseudoLikelihoodAscent):
    """One sweep per round, followed by quasi-Newton steps; no round lowers the objective except by rounding.

    Attributes:
        spacers: number of these steps; 0 is the paper's algorithm. A step takes two products of the images with the
            couplings, a sweep as much as D / 2.
    """

    spacers: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.spacers >= 0, f"spacers must not be negative, not {self.spacers}")

    def improve(self, objective: Objective, at: Spins) -> Spins:
        swept = sweep(objective, at)
        return climb(objective, swept, self.spacers, self.tol) if self.spacers else swept


@dataclass(frozen=True)
class GradientAscent(PseudoLikelihoodAscent):
    """Gradient ascent: all parameters at once by μ times the steps of BSLM (Hyvärinen 2006), μ = 1 / λ.

    Monotone if 0 < μ < 2 / λ, with λ the largest eigenvalue of the second moments of (1, x): see `Sample.curvature`.
    This limit is at least 2 / D, and hardly more if pixels are alike. The paper's μ <= 1 is right only for sweeps, in
    which each update sees the earlier ones.
    """

    rounds: int = 1000

    def improve(self, objective: Objective, at: Spins) -> Spins:
        return at.plus(objective.evaluate(at).gradient, 1 / (objective.sample.curvature + self.l2))


@dataclass(frozen=True)
class QuasiNewton(PseudoLikelihoodAscent):
    """Only the quasi-Newton steps of `climb`: for many pixels, where one sweep takes as long as hundreds of steps.

    Attributes:
        steps: steps per round; each round forgets the curvature found.
    """

    steps: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.steps >= 1, f"steps must be at least 1, not {self.steps}")

    def improve(self, objective: Objective, at: Spins) -> Spins:
        return climb(objective, at, self.steps, self.tol)


def state_at(objective: Objective, at: Spins) -> LearnerState:
    value = torch.tensor(objective.value(at), dtype=torch.float64)
    return {"couplings": at.couplings, "bias": at.bias, "value": value}


def spins_of(state: Mapping[str, Tensor]) -> Spins:
    return Spins(state["couplings"], state["bias"])
