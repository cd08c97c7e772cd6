"""Solve again with more damping where a solver did not converge.

An iteration may jump to and fro around a fixed point for ever, and its log Z then means nothing. More damping keeps the
fixed points and mostly makes it converge.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from restore.priors import BoltzmannMachine
from restore.solvers.contract import FixedPoint
from restore.solvers.solution import Solution
from restore.solvers.starts import calmer, replaced
from restore.status import Status

# How many times a start that has not converged is tried again, with half the step each time.
AGAIN = 2


@dataclass(frozen=True)
class Settling:
    """A solver that tries again.

    Attributes:
        solver: for the first try.
        again: number of further tries.
    """

    solver: FixedPoint
    again: int = AGAIN

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None) -> Solution:
        """Iterate from visible means (batch, D); images that have not converged start again with half the step."""
        solver = self.solver
        found = solver.solve(machine, start)
        for _ in range(self.again):
            left = (found.status == int(Status.MAX_ITER)).nonzero().squeeze(1)
            if not len(left):
                break
            solver = calmer(solver)
            found = replaced(found, left, solver.solve(machine.rows(left), None if start is None else start[left]))
        return found
