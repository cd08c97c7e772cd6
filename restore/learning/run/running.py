"""A training run in the middle of its work: what it holds, and how that goes into a checkpoint and comes back."""

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


@dataclass
class Run(Generic[PriorT]):
    """A training run in the middle of its work.

    Attributes:
        average: moving average of the parameters, by name; empty where the recipe wants none.
        best: parameters with the lowest validation error so far; empty before there is one.
        best_error, best_epoch: that error, and the epoch it was reached in.
        mostly_converged: whether the solver converged for most images of the epoch before.
        epochs: how many there are to be.
        late: whether there is no time for all of them, or was none in a run that this one repeats.
        changes: what was changed between two sittings, so that no recipe repeats the run to the bit, in words.
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
    late: bool = False
    changes: list[str] = field(default_factory=list)
    step: int = 0
    seconds: float = 0.0
    sums: dict[str, Tensor | float] = field(default_factory=dict)

    @property
    def current(self) -> PriorT:
        """The prior that training has come to: the average where there is one."""
        return self.prior.with_parameters(self.average) if self.average else self.prior

    def best_so_far(self, batches: int) -> Passed:
        """What there is to restore with; as long as nothing was judged that is what training has come to.

        Args:
            batches: of an epoch.
        """
        if not self.best:
            return Passed(self.step // batches, self.epochs, self.seconds, {}, self.current)
        machine, judged = self.prior.with_parameters(self.best), {"validation_error": self.best_error}
        return Passed(self.best_epoch + 1, self.epochs, self.seconds, judged, machine)


def numbers(sums: Mapping[str, Tensor | float]) -> dict[str, float]:
    """Sums as plain numbers; a device that works asynchronously is waited for."""
    return {name: float(value) for name, value in sums.items()}


# Numbers of a run that go into a checkpoint as they are.
_MEMORIES = ("best_error", "best_epoch", "mostly_converged", "epochs", "late", "changes")


def snapshot(run: Run[Any], identity: Mapping[str, Any]) -> Checkpoint:
    """Everything that a run needs to go on."""
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
    """Put a run that has just begun where it was at a checkpoint; what cannot be as it was is returned in words."""
    change = set_generator(run.generator, found, seed)
    for name, value in run.prior.parameters.items():
        value.copy_(found.tensors[f"prior.{name}"])
    device = run.prior.parameters["weights.0"].device
    run.learner_state = {name: value.to(device) for name, value in _under(found.tensors, "learner.").items()}
    run.order = found.tensors["order"].to(device)
    run.average = {name: value.to(device) for name, value in _under(found.tensors, "average.").items()}
    run.best = {name: value.to(device) for name, value in _under(found.tensors, "best.").items()}
    for name in _MEMORIES:
        # Earlier versions knew neither of a limit of time nor of its number of epochs.
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
