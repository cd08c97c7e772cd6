"""Maximum likelihood with log Z from TAP solutions (TAP machine, Alg. 2), or from adaptive ones (appendix D)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from restore.errors import UsageError, require
from restore.fields import Fields
from restore.learning.gradients.centring import GreyScale, centred, follow
from restore.learning.gradients.statistics import FREE_PHASES, clamped, clamped_above, difference
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import Gradient, LearnerState, LearningRule, Step
from restore.priors import RBM, LayeredPrior
from restore.solvers import TAP, AdaptiveTAP
from restore.solvers.loop import iterate, largest_change
from restore.solvers.tap import cavity_fields
from restore.units import Bernoulli

Starts = Literal["data", "persistent", "redrawn"]


@dataclass(frozen=True)
class TAPLikelihood(LearningRule):
    """Gradient of the TAP log-likelihood: clamped statistics minus those of the machine's TAP solutions.

    Attributes:
        starts: where the solutions of a step start.
            "data": from the mini-batch itself (the paper's choice);
            "persistent": from the solutions of the step before;
            "redrawn": from images drawn from the marginals of the step before. Drawing lets solutions leave spurious
            minima, which a deterministic continuation cannot.
        solutions: number of persistent or redrawn solutions (K).
        iterations: iteration limit per step.
        tol: a solution is left alone once no mean moves by more than this.
        damping: share of the old value kept at each iteration.
        centring: take the gradient in the centred gauge.
        grey_unit: the unit of grey levels in the gradient, in (0, 1]; only for grey pixels. With the plain gradient (1)
            curvatures hardly move, as their scale is the inverse variance of a pixel given its neighbours.
        fixed_point: what finds solutions of the machine without evidence, a key of `FREE_PHASES`.
    """

    any_units: ClassVar[bool] = True

    starts: Starts = "data"
    solutions: int = 100
    iterations: int = 3
    tol: float = 0.0
    damping: float = 0.0
    centring: bool = True
    grey_unit: float = 1.0
    fixed_point: str = "tap"

    def __post_init__(self) -> None:
        require(0 < self.grey_unit <= 1, f"grey_unit must lie in (0, 1], not {self.grey_unit}")
        if self.grey_unit < 1 and not self.centring:
            raise UsageError("grey_unit is part of the centred gauge; leave it out, or set centring")
        if self.solutions < 1 or self.iterations < 1:
            raise UsageError(f"solutions and iterations must be at least 1, not {self.solutions} and {self.iterations}")
        if self.fixed_point not in FREE_PHASES:
            raise UsageError(f"fixed_point must be one of {', '.join(FREE_PHASES)}, not {self.fixed_point!r}")
        self.solver  # noqa: B018 - checks tol and damping

    def check(self, prior: PriorShape) -> None:
        super().check(prior)
        require(prior.grey or self.grey_unit == 1, "[learner] grey_unit is for grey pixels; leave it out")
        require(
            prior.plain or FREE_PHASES[self.fixed_point].any_units,
            f'[learner] fixed_point = "{self.fixed_point}" is for binary units in two layers; leave it out',
        )

    @property
    def solver(self) -> TAP | AdaptiveTAP:
        return FREE_PHASES[self.fixed_point].solver(max_iter=self.iterations, tol=self.tol, damping=self.damping)

    @property
    def remembers(self) -> bool:
        """True if the solutions of one step are the starts of the next."""
        return self.starts in ("persistent", "redrawn")

    def divided(self, parts: int) -> Self:
        return replace(self, solutions=math.ceil(self.solutions / parts))

    def init(self, prior: LayeredPrior, images: Tensor, generator: torch.Generator) -> LearnerState:
        nothing = Fields(images.new_zeros(1))
        means = [images.mean(0), *(layer.moments(nothing)[0] for layer in prior.layers[1:])]
        state = {f"offset.{index}": mean for index, mean in enumerate(means)}
        if self.grey_unit < 1:
            # For pixels that may be exactly 0: the typical value of those that are not.
            counts = (images != 0).sum(0).clamp_min(1)
            state["centre"] = images.sum(0) / counts
        if self.remembers:
            chosen = torch.randint(len(images), (self.solutions,), generator=generator, device=images.device)
            parts = self.solver.init(prior, images[chosen])
            state |= {f"solution.{index}": value for index, value in enumerate(parts)}
        return state

    def step(
        self, prior: LayeredPrior, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int = 0
    ) -> Step:
        free = FREE_PHASES[self.fixed_point].solutions(self.solver, prior, self._start(prior, batch, state, generator))
        data = self._clamped(prior, batch)
        gradient = difference(data, free.statistics)
        hidden = range(1, len(prior.layers))
        offsets = [state["offset.0"]]
        offsets += [follow(state[f"offset.{index}"], data[f"units.{index}.bias"]) for index in hidden]
        if self.centring:
            grey = GreyScale(self.grey_unit, state["centre"]) if "centre" in state else None
            gradient = centred(prior.couplings, gradient, offsets, grey)
        after = state | {f"offset.{index}": offset for index, offset in enumerate(offsets)}
        if self.remembers:
            after |= {f"solution.{index}": value for index, value in enumerate(free.state)}
        return Step(gradient, after, free.monitors)

    def _clamped(self, prior: LayeredPrior, batch: Tensor) -> Gradient:
        """Statistics given the images: exact with one layer of hidden units, from TAP solutions with more."""
        if isinstance(prior, RBM):
            return clamped(prior, batch)
        above = prior.above(batch)
        start = self.solver.init(above, above.layers[0].moments(Fields(batch.new_zeros(1)))[0])
        state = iterate(
            self.solver.step,
            above,
            start,
            max_iter=self.iterations,
            tol=self.tol,
            change=largest_change(len(above.layers)),
        ).state
        depth = len(above.layers)
        return clamped_above(prior, batch, above, list(state[:depth]), list(state[depth:]))

    def _start(
        self, prior: LayeredPrior, batch: Tensor, state: LearnerState, generator: torch.Generator
    ) -> tuple[Tensor, ...]:
        """The initial states of the solver."""
        if self.starts == "data":
            return self.solver.init(prior, batch)
        kept = tuple(state[f"solution.{index}"] for index in range(sum(name.startswith("solution") for name in state)))
        if self.starts == "persistent":
            return kept
        if isinstance(prior.layers[0], Bernoulli):
            return self.solver.init(prior, torch.bernoulli(kept[0], generator=generator))
        depth = len(prior.layers)
        fields = cavity_fields(prior, 0, list(kept[:depth]), list(kept[depth : 2 * depth]))
        return self.solver.init(prior, prior.layers[0].sample(fields, generator))
