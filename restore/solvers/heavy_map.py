"""Base of solvers that solve a batch in parts, because a state is large.

A state begins with the means of all layers, then their variances, as in a `LayeredMap`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from restore.priors import BoltzmannMachine
from restore.solvers.layered_map import first_means
from restore.solvers.loop import State, check_settings, iterate, largest_change
from restore.solvers.parts import check_memory, images_at_once, parts_of
from restore.solvers.solution import Solution, concatenate
from restore.status import Status
from restore.tracing import tracing
from restore.zoo.inference import DAMPING

Machine = TypeVar("Machine", bound=BoltzmannMachine)


@dataclass(frozen=True)
class HeavyMap(ABC, Generic[Machine]):
    """A fixed-point solver whose state is large.

    It watches means and variances: means alone could stand still in the first iteration by chance.

    Attributes:
        max_iter, tol, damping: as in `FixedPoint`.
        max_memory: bytes that the state may take; larger batches are solved in parts.
    """

    name: ClassVar[str]

    max_iter: int = 1000
    tol: float = 1e-5
    damping: float = DAMPING
    max_memory: int = 2**31

    def __post_init__(self) -> None:
        check_settings(self.max_iter, self.tol, self.damping)
        check_memory(self.max_memory)

    @abstractmethod
    def init(self, machine: Machine, start: Tensor) -> State:
        """The state that starts from visible means (batch, D)."""

    @abstractmethod
    def step(self, machine: Machine, state: State) -> State:
        """One iteration."""

    @abstractmethod
    def log_partition(self, machine: Machine, state: State) -> Tensor:
        """The method's estimate of log Z in a state; shape (batch,), float64."""

    @abstractmethod
    def numbers(self, machine: Machine) -> int:
        """The most numbers that an image takes, in the machine's precision."""

    def solve(self, machine: Machine, start: Tensor | None = None) -> Solution:
        """As in `LayeredMap`; an image for whose final state there is no log Z has diverged, and its results are NaN.

        Raises:
            InputError: if a single image exceeds `max_memory`.
        """
        start = first_means(machine, start)
        if tracing():
            return self._together(machine, start)
        return concatenate([self._together(machine.rows(rows), start[rows]) for rows in self.parts(machine, start)])

    def parts(self, machine: Machine, start: Tensor) -> tuple[Tensor, ...]:
        """Split the rows of a batch with visible means (batch, D) into parts to solve together.

        Raises:
            InputError: if a single image exceeds `max_memory`.
        """
        memory = self.numbers(machine) * start.element_size()
        at_once = images_at_once(self.name, machine, memory, self.max_memory)
        return parts_of(machine, len(start), at_once, memory)

    def _together(self, machine: Machine, start: Tensor) -> Solution:
        depth = len(machine.layers)
        outcome = iterate(
            self.step,
            machine,
            self.init(machine, start),
            max_iter=self.max_iter,
            tol=self.tol,
            change=largest_change(2 * depth),
        )
        log_z = self.log_partition(machine, outcome.state)
        # A state without a log Z is not a solution, even if it stands still.
        broken = log_z.isnan()
        moments = tuple(torch.where(broken[:, None], torch.nan, value) for value in outcome.state[: 2 * depth])
        status = torch.where(broken, int(Status.DIVERGED), outcome.status)
        return Solution(moments[:depth], moments[depth:], log_z, outcome.iterations, outcome.residual, status)
