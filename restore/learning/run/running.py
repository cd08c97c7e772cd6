"""The state of a training run, and how it is saved to a checkpoint and restored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import torch
from torch import Tensor

from restore.learning.course import PriorT
from restore.learning.rules.contract import LearnerState
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import set_generator
from restore.progress import Passed


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
        epochs: how many are planned.
        watch_every: every how many of them the prior is judged.
        late: whether there is no time for all of them, or was none in a run that this one repeats.
        halvings: how often training diverged, went back to the start of an epoch, and halved its rate.
        changes: what changed between sittings, so that no recipe repeats the run exactly, in words.
    """

    prior: PriorT
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    generator: torch.Generator
    order: Tensor
    average: dict[str, Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    best_error: float = math.inf
    best_epoch: int = 0
    mostly_converged: bool = True
    epochs: int = 0
    watch_every: int = 0
    late: bool = False
    halvings: int = 0
    changes: list[str] = field(default_factory=list)
    start: dict[str, Tensor] = field(default_factory=dict)
    start_share: float = 0.0
    step: int = 0
    seconds: float = 0.0
    sums: dict[str, Tensor | float] = field(default_factory=dict)

    @property
    def current(self) -> PriorT:
        """The present prior: the average if there is one, with the start's share."""
        latest = self.average or self.prior.parameters
        if not self.start:
            return self.prior.with_parameters(latest)
        mixed = {name: torch.lerp(value, self.start[name], self.start_share) for name, value in latest.items()}
        return self.prior.with_parameters(mixed)

    def best_so_far(self, batches: int) -> Passed:
        """The best prior so far, or the present one if none was judged; an epoch has `batches` mini-batches."""
        if not self.best:
            return Passed(self.step // batches, self.epochs, self.seconds, {}, self.current)
        machine, judged = self.prior.with_parameters(self.best), {"validation_error": self.best_error}
        return Passed(self.best_epoch + 1, self.epochs, self.seconds, judged, machine)


def check_finite(run: Run[Any]) -> None:
    """Raises Diverged if a parameter is not finite."""
    for name, value in run.prior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise Diverged(run.step, name)


def numbers(sums: Mapping[str, Tensor | float]) -> dict[str, float]:
    """Sums as plain numbers; waits for asynchronous devices."""
    return {name: float(value) for name, value in sums.items()}


# Attributes of a run that go into a checkpoint unchanged.
_MEMORIES = ("best_error", "best_epoch", "mostly_converged", "epochs", "watch_every", "late", "halvings", "changes")


def snapshot(run: Run[Any], identity: Mapping[str, Any]) -> Checkpoint:
    """Everything that a run needs to continue."""
    tensors = {f"prior.{name}": value for name, value in run.prior.parameters.items()}
    tensors |= {f"learner.{name}": value for name, value in run.learner_state.items()}
    tensors |= {f"average.{name}": value for name, value in run.average.items()}
    tensors |= {f"best.{name}": value for name, value in run.best.items()}
    tensors |= {"order": run.order, "generator": run.generator.get_state()}
    for index, moments in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items() if value is not None}
    facts = {"identity": dict(identity), "seconds": run.seconds, "sums": numbers(run.sums)}
    facts |= {name: getattr(run, name) for name in _MEMORIES}
    return Checkpoint(run.step, tensors, facts)


def restore_run(run: Run[Any], found: Checkpoint, seed: int) -> str:
    """Restore a new run from a checkpoint; returns in words what cannot be as it was."""
    change = set_generator(run.generator, found, seed)
    for name, value in run.prior.parameters.items():
        value.copy_(found.tensors[f"prior.{name}"])
    device = run.prior.parameters["weights.0"].device
    run.learner_state = {name: value.to(device) for name, value in _under(found.tensors, "learner.").items()}
    run.order = found.tensors["order"].to(device)
    run.average = {name: value.to(device) for name, value in _under(found.tensors, "average.").items()}
    run.best = {name: value.to(device) for name, value in _under(found.tensors, "best.").items()}
    for name in _MEMORIES:
        # Earlier versions had neither time limits nor the number of epochs.
        setattr(run, name, found.facts.get(name, getattr(run, name)))
    run.step, run.seconds, run.sums = found.step, found.facts["seconds"], dict(found.facts["sums"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under(found.tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        state.setdefault(int(index), {})[moment] = value
    run.optimizer.load_state_dict(run.optimizer.state_dict() | {"state": state})
    return change


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
