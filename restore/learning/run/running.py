"""The state of training by gradient steps: from mini-batch to learner to optimizer; its checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.course import Course, PriorT
from restore.learning.optimizers import optimizer_of
from restore.learning.recipes.recipe import Recipe
from restore.learning.rules.contract import LearnerState, Step
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import set_generator

# A moving average of parameters remembers fewer steps until this many are done.
WARM_UP = 10


class Diverged(Exception):
    """A parameter, or a field computed from parameters, is no longer finite."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(f"{what} is no longer finite at step {step}")


@dataclass
class Run(Generic[PriorT]):
    """The state of a training run.

    Attributes:
        average: moving average of the parameters, by name; empty if the recipe has none.
        start: parameters before the first step, by name, and how much of them is in the present prior; empty and 0 if
            the recipe has no such share.
        best: parameters with the lowest validation error so far; empty at first.
        best_error, best_epoch: that error, and its epoch.
        mostly_converged: whether the solver converged for most images of the previous epoch.
        halvings: how often training diverged, went back to the start of an epoch, and halved its rate.
        began: seconds used when this stage of training began.
        stepping, judging: seconds that a step and judging took the last time.
        sums: sums of this epoch's monitors.
    """

    prior: PriorT
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    generator: torch.Generator
    average: dict[str, Tensor]
    start: dict[str, Tensor] = field(default_factory=dict)
    start_share: float = 0.0
    order: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    best: dict[str, Tensor] = field(default_factory=dict)
    best_error: float = math.inf
    best_epoch: int = 0
    mostly_converged: bool = True
    halvings: int = 0
    began: float = 0.0
    stepping: float = 0.0
    judging: float = 0.0
    step: int = 0
    sums: dict[str, Tensor | float] = field(default_factory=dict)

    @classmethod
    def begin(cls, recipe: Recipe, course: Course[PriorT, Any]) -> Run[PriorT]:
        """The state before the first step."""
        generator = torch.Generator(course.images.device).manual_seed(recipe.seed)
        # If the size is not given, the course knows the prior to start from.
        hidden = 0 if recipe.prior.hidden == "auto" else recipe.prior.hidden
        try:
            prior = course.initial(hidden, recipe.prior.weight_scale, generator)
        except RuntimeError as fault:
            # torch has no special exception for lack of main memory.
            if not any(word in str(fault) for word in ("memory", "Storage size")):
                raise
            raise TrainingError(f"{hidden} hidden units do not fit into memory; lower [prior] hidden") from fault
        # Copies, because steps change tensors in place, and several runs may start from the same grown prior.
        prior = prior.with_parameters(_copied(prior.parameters))
        state = recipe.learner.init(prior, course.images, generator)
        settings, named = recipe.optimizer, prior.parameters
        optimizer = optimizer_of(settings.name, named, settings.rate, settings.momentum, settings.weight_decay)
        average = _copied(named) if settings.average else {}
        start = _copied(named) if recipe.prior.start_share else {}
        return Run(prior, optimizer, state, generator, average, start, recipe.prior.start_share)

    @property
    def current(self) -> PriorT:
        """The present prior: the average if there is one, with the start's share."""
        latest = self.average or self.prior.parameters
        if not self.start:
            return self.prior.with_parameters(latest)
        mixed = {name: torch.lerp(value, self.start[name], self.start_share) for name, value in latest.items()}
        return self.prior.with_parameters(mixed)

    def advance(self, recipe: Recipe, batch: Any, rate: float, epoch: int) -> None:
        """One mini-batch: the optimizer changes the prior's tensors in place, once for each step of the learner.

        Raises:
            Diverged: if a field is not finite.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        try:
            step: Step = recipe.learner.step(self._renewed, batch, self.learner_state, self.generator, epoch)
            self._climb(step)
            while step.again is not None:
                step = step.again(self._renewed)
                self._climb(step)
        except RuntimeError as fault:
            # Sampling refuses NaN probabilities, so diverging weights may show here first. If the magnitudes of all
            # parameters have a finite sum, no field is NaN.
            if math.isfinite(sum(value.abs().sum() for value in self.prior.parameters.values())):
                raise
            raise Diverged(self.step, "a field") from fault
        self.learner_state = dict(step.state)
        for name, value in step.monitors.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.double()
        self.step += 1
        # The first steps are far from the result, so the average forgets them faster.
        keep = min(recipe.optimizer.average, self.step / (self.step + WARM_UP))
        for name, value in self.average.items():
            value.lerp_(self.prior.parameters[name], 1 - keep)

    @property
    def _renewed(self) -> PriorT:
        """A new prior object for each step, so that nothing computed from old weights is reused."""
        return self.prior.with_parameters(self.prior.parameters)

    def _climb(self, step: Step) -> None:
        for name, parameter in self.prior.parameters.items():
            parameter.grad = step.gradient[name]
        self.optimizer.step()

    def check_finite(self) -> None:
        """Raises Diverged if a parameter is not finite."""
        for name, value in self.prior.parameters.items():
            if not bool(torch.isfinite(value).all()):
                raise Diverged(self.step, name)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        """Everything that a run needs to continue, and facts about it."""
        tensors = {f"prior.{name}": value for name, value in self.prior.parameters.items()}
        for prefix in _TENSORS:
            tensors |= {f"{prefix}.{name}": value for name, value in getattr(self, prefix).items()}
        tensors |= {"order": self.order, "generator": self.generator.get_state()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items() if value is not None}
        sums = {name: float(value) for name, value in self.sums.items()}
        memories = {name: getattr(self, name) for name in _MEMORIES}
        return Checkpoint(self.step, tensors, {**facts, "sums": sums, **memories})

    def restore(self, found: Checkpoint, seed: int) -> str:
        """Set up the state of a checkpoint; returns in words what cannot be as it was."""
        change = set_generator(self.generator, found, seed)
        for name, value in self.prior.parameters.items():
            value.copy_(found.tensors[f"prior.{name}"])
        device = self.prior.parameters["weights.0"].device
        self.order = found.tensors["order"].to(device)
        for prefix in _TENSORS:
            setattr(self, prefix, {name: value.to(device) for name, value in _under(found, f"{prefix}.").items()})
        for name in _MEMORIES:
            setattr(self, name, found.facts[name])
        self.step, self.sums = found.step, dict(found.facts["sums"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in _under(found, "optimizer.").items():
            index, moment = name.split(".", 1)
            state.setdefault(int(index), {})[moment] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})
        return change


# Attributes of a run that go into a checkpoint: tensors by name, and numbers.
_TENSORS = ("learner_state", "average", "best")
_MEMORIES = ("best_error", "best_epoch", "mostly_converged", "halvings", "began", "stepping", "judging")


def _copied(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in named.items()}


def _under(found: Checkpoint, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in found.tensors.items() if name.startswith(prefix)}
