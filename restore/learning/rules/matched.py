"""Learning by restoring: the solver's marginals under random damage should be the clean image.

A prior is trained with the inference it restores with. The loss is the cross-entropy of the marginals after a few
iterations of the solver, and its gradient is taken through these iterations (Domke, TPAMI 2013: truncated fitting;
Goodfellow et al., NIPS 2013: multi-prediction training) or at the fixed point (Bai et al., NeurIPS 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from restore.errors import UsageError, require
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import LearnerState, LearningRule, Restorations, Step
from restore.priors import BoltzmannMachine
from restore.registry import SOLVERS, smooth_solvers
from restore.solvers.layered_map import LayeredMap
from restore.solvers.loop import State
from restore.zoo.inference import DAMPING

# A task's mean loss remembers about this many mini-batches.
LOSS_MEMORY = 50

# The tasks of machines that learn from pages and their truth.
PAGES = ("pages",)

# A task whose images are restored almost perfectly counts as if this were its loss, in nats per image.
LEAST_LOSS = 0.5


@dataclass(frozen=True)
class MatchedMarginals(LearningRule):
    """The cross-entropy of the solver's marginals under the evidence of damaged images.

    Every task counts in proportion to how far its loss changes, not to the loss itself: strong noise, whose loss is a
    hundred times that of weak noise, would otherwise decide alone.

    Attributes:
        tasks: kinds of damage, such as "flip:0.1"; the images of a mini-batch are divided evenly among them.
        solver: the solver to train with, and to restore with later.
        iterations: the number of its iterations.
        scored: the number of last iterations whose marginals count equally, so that the image also stays restored.
        damping: share of the old value kept at each iteration.
        unrolled: the number of last iterations that an unrolled gradient goes back through; 0 for all.
        gradient: "unrolled" goes back through iterations; "implicit" takes the last state for a fixed point and
            solves for the gradient there, with as many iterations and the memory of one.
        products: precision of matrix products and convolutions, "single" or "bfloat16"; on processors that have
            bfloat16, convolutional machines learn in half the time with it.
        fewest: if not 0, the number of iterations is drawn for each mini-batch, from this one on, so that an image
            stays restored when a solver runs on.
    """

    any_units: ClassVar[bool] = True

    tasks: tuple[str, ...] = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4")
    solver: str = "tap"
    iterations: int = 12
    scored: int = 3
    damping: float = DAMPING
    gradient: Literal["unrolled", "implicit"] = "unrolled"
    unrolled: int = 0
    products: Literal["single", "bfloat16"] = "single"
    fewest: int = 0

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS or not SOLVERS[self.solver].smooth:
            raise UsageError(
                f"solver must be one that can be differentiated through, {smooth_solvers()}, not {self.solver!r}"
            )
        require(bool(self.tasks), 'tasks is empty; give the damage to learn from, such as ["flip:0.1"]')
        if not 0 <= self.fewest <= self.iterations:
            raise UsageError(f"fewest must lie in 0 ... {self.iterations} (iterations), not {self.fewest}")
        least = self.fewest or self.iterations
        if not 1 <= self.scored <= least:
            raise UsageError(f"scored must lie in 1 ... {least} (the fewest iterations), not {self.scored}")
        if self.unrolled and not self.scored <= self.unrolled <= self.iterations:
            span = f"{self.scored} (scored) ... {self.iterations} (iterations)"
            raise UsageError(f"unrolled must be 0, or lie in {span}, not {self.unrolled}")
        if self.gradient == "implicit" and self.scored != 1:
            raise UsageError(f"an implicit gradient scores one fixed point; set scored to 1, not {self.scored}")
        self.fixed_point  # noqa: B018 - checks iterations and damping

    def check(self, prior: PriorShape) -> None:
        super().check(prior)
        if prior.kind.pages:
            require(
                self.tasks == PAGES,
                f"[learner] tasks of a {prior.kind.words} are {list(PAGES)}: its data have the damage",
            )
        else:
            for text in self.tasks:
                prior.task_of(text)

    @property
    def restores(self) -> tuple[str, ...]:
        return self.tasks

    @property
    def restores_with(self) -> Mapping[str, Any]:
        return {"solver": self.solver, "damping": self.damping, "modes": 0, "starts": 1}

    @property
    def fixed_point(self) -> LayeredMap:
        made: LayeredMap = SOLVERS[self.solver].load()(max_iter=self.iterations, tol=0.0, damping=self.damping)
        return made

    def drawn(self, generator: torch.Generator) -> MatchedMarginals:
        """The rule with the number of iterations of one mini-batch."""
        if not self.fewest:
            return self
        drawn = torch.randint(self.fewest, self.iterations + 1, (), generator=generator, device=generator.device)
        return replace(self, iterations=int(drawn), fewest=0, unrolled=min(self.unrolled, int(drawn)))

    def init(self, prior: BoltzmannMachine, images: Tensor, generator: torch.Generator) -> LearnerState:
        return {"loss": images.new_zeros(len(self.tasks))}

    def step(
        self,
        prior: BoltzmannMachine,
        batch: Restorations,
        state: LearnerState,
        generator: torch.Generator,
        epoch: int = 0,
    ) -> Step:
        # Nothing made in inference mode can be differentiated.
        short = torch.autocast(batch.clean.device.type, torch.bfloat16, enabled=self.products == "bfloat16")
        with torch.inference_mode(False), torch.enable_grad(), short:
            clean, start, tasks = (part.clone() for part in (batch.clean, batch.start, batch.tasks))
            own = Restorations(clean, batch.evidence.mapped(Tensor.clone), start, tasks)
            leaves = {name: value.clone().requires_grad_() for name, value in prior.parameters.items()}
            machine = prior.with_parameters(leaves).tilt(own.evidence)
            fixed = machine
            if self.unrolled or self.gradient == "implicit":
                # A machine of its own, for what a machine computes only once would else lack its gradient.
                still = {name: value.detach() for name, value in leaves.items()}
                fixed = prior.with_parameters(still).tilt(own.evidence)
            solve = _unrolled if self.gradient == "unrolled" else _settled
            restored = solve(self.drawn(generator), machine, fixed, own)
            before, losses = state["loss"], restored.losses.detach()
            sums, counts = (
                torch.zeros_like(before).index_add(0, own.tasks, of) for of in (losses, torch.ones_like(losses))
            )
            # The mean loss of each task over the last mini-batches; 0 if it is not yet met.
            mean = sums / counts.clamp_min(1)
            after = torch.where(before > 0, before + (mean - before) / LOSS_MEMORY, mean)
            remembered = torch.where(counts > 0, after, before)
            weights = remembered[own.tasks].clamp_min(LEAST_LOSS).reciprocal() / len(batch.clean)
            slopes = dict(zip(leaves, restored.slopes(weights, tuple(leaves.values())), strict=True))
        gradient = {name: -value for name, value in slopes.items()}
        for index, coupling in enumerate(prior.couplings):
            gradient[f"weights.{index}"] = coupling.slope(gradient[f"weights.{index}"])
        return Step(gradient, {"loss": remembered}, {"loss": sums.sum() / counts.sum()})


class _Restored(NamedTuple):
    """The loss of each image, (batch,); and its gradient: weights (batch,), parameters -> one gradient for each."""

    losses: Tensor
    slopes: Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def surprise(solver: LayeredMap, machine: BoltzmannMachine, state: State, clean: Tensor) -> Tensor:
    """-log of the probability, or the density, of images (batch, D) under a state's marginals, in nats; (batch,)."""
    units, fields = machine.layers[0], solver.fields_of_image(machine, state)
    return (units.log_partition(fields) - units.tilt(fields).log_weight(clean)).sum(-1)


def _unrolled(
    rule: MatchedMarginals, machine: BoltzmannMachine, fixed: BoltzmannMachine, batch: Restorations
) -> _Restored:
    """Losses after the last iterations, differentiated through all of them, or through some."""
    solver, scores = rule.fixed_point, list[Tensor]()
    before = rule.iterations - (rule.unrolled or rule.iterations)
    first = fixed if before else machine
    state = solver.stepped(first, solver.init(first, batch.start), before)
    state = solver.stepped(machine, state, rule.iterations - before - rule.scored)
    for _ in range(rule.scored):
        state = solver.step(machine, state)
        scores.append(surprise(solver, machine, state, batch.clean))
    losses = torch.stack(scores).mean(0)
    return _Restored(losses, lambda weights, leaves: torch.autograd.grad((weights * losses).sum(), leaves))


def _settled(
    rule: MatchedMarginals, machine: BoltzmannMachine, fixed: BoltzmannMachine, batch: Restorations
) -> _Restored:
    """Losses at a fixed point z = f(z, θ), differentiated there.

    With g the derivative of the loss in z, that in θ is λ ∂f/∂θ with λ = g + λ ∂f/∂z, found by iterating that.
    """
    solver = rule.fixed_point
    state = solver.stepped(fixed, solver.init(fixed, batch.start), rule.iterations)
    state = tuple(value.requires_grad_() for value in state)
    stepped = solver.step(machine, state)
    losses = surprise(solver, machine, state, batch.clean)

    def slopes(weights: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # Mean field ignores variances.
        total = (weights * losses).sum()
        direct = torch.autograd.grad(total, (*state, *leaves), retain_graph=True, materialize_grads=True)
        inner = direct[: len(state)]
        multipliers = inner
        for _ in range(rule.iterations):
            back = torch.autograd.grad(stepped, state, multipliers, retain_graph=True, materialize_grads=True)
            multipliers = tuple(one + other for one, other in zip(inner, back, strict=True))
        through = torch.autograd.grad(stepped, leaves, multipliers, materialize_grads=True)
        return tuple(one + other for one, other in zip(direct[len(state) :], through, strict=True))

    return _Restored(losses, slopes)
