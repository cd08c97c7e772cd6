"""Find the TAP solutions of a prior without evidence: how many, how deep, how wide (TAP machine, sec. VII.3).

Every start leads to some solution, its best match in the prior's memory. A prior that has learnt nothing has one
solution for all starts; one that has learnt what images have in common has a few; one that has memorised them, or has a
rough landscape, has one for each start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from settling import Settling
from torch import Tensor

from restore.console import Meter
from restore.errors import UsageError
from restore.priors import BoltzmannMachine
from restore.solvers import LayeredMap
from restore.solvers.solution import Solution, concatenate
from restore.solvers.starts import SAME
from restore.solvers.tap import TAP
from restore.status import Status

# In the paper the means converge to a mean squared change of 1e-8: an undamped update moves none by more than 1e-4, a
# damped one by that much less. Without damping few starts of a trained prior converge: for tap-mnist-100 4 in 1,000,
# with .7 44 %, with .9 nine in ten.
PROBING = TAP(max_iter=3000, damping=0.9, tol=1e-5)

# If a smaller share of starts leads to a solution, there is a warning about the results.
MOSTLY = 0.9

# How many starts are solved side by side.
BLOCK = 500

# How many solutions are compared at a time with those found so far.
COMPARED = 1000


@dataclass(frozen=True)
class Solutions:
    """Distinct solutions, lowest free energy first.

    Attributes:
        means: expected value of every unit in each, per layer (S, units); float64.
        log_partition: the estimate of log Z at each, (S,), float64.
        led_to: which solution each start led to, (N,), int64; -1 for none.
        status: a `restore.status.Status` value per start, (N,), int64. Only converged starts lead to a solution.
    """

    means: tuple[Tensor, ...]
    log_partition: Tensor
    led_to: Tensor
    status: Tensor

    @property
    def count(self) -> int:
        """The number of solutions, S."""
        return len(self.log_partition)

    @property
    def starts(self) -> int:
        """The number of starts, N."""
        return len(self.status)

    @property
    def converged(self) -> int:
        """Number of starts that led to a solution."""
        return self._with(Status.CONVERGED)

    @property
    def unfinished(self) -> int:
        """Number of starts that reached the iteration limit."""
        return self._with(Status.MAX_ITER)

    @property
    def diverged(self) -> int:
        """Number of starts from which a value became infinite or NaN."""
        return self._with(Status.DIVERGED)

    @property
    def failures(self) -> str:
        """How starts that led to no solution ended, in words."""
        return f"{self.unfinished} reached the iteration limit, {self.diverged} diverged"

    @property
    def free_energies(self) -> Tensor:
        """-log Z at each solution, (S,), increasing."""
        return -self.log_partition

    @property
    def helmholtz(self) -> float | None:
        """The prior's free energy: the plain average over its solutions (sec. V, Fig. 2); None without solutions."""
        return float(self.free_energies.mean()) if self.count else None

    @property
    def log_sum_exp(self) -> float | None:
        """log Z if every solution is a mode: log Σ_s exp(log Z_s); None without solutions."""
        return float(self.log_partition.logsumexp(0)) if self.count else None

    @cached_property
    def basins(self) -> Tensor:
        """How many starts led to each solution, (S,), int64."""
        return torch.bincount(self.led_to[self.led_to >= 0], minlength=self.count)

    def _with(self, status: Status) -> int:
        return int((self.status == int(status)).sum())


@torch.inference_mode()
def tap_solutions(
    machine: BoltzmannMachine,
    starts: Tensor,
    solver: LayeredMap = PROBING,
    meter: Meter = lambda done, note="": None,
) -> Solutions:
    """Run TAP from many starts and find its distinct solutions.

    Solutions are distinct if some visible mean differs by more than `SAME`. Results of one solution are less than .01
    apart, different solutions more than .1 (all pairs from 300 starts of tap-mnist-100); any bound between gives the
    same count. Damping changes which solution a start leads to, but not which solutions exist.

    Args:
        machine: any Boltzmann machine, without a batch dimension.
        starts: visible means, (N, D), in the range of the units; on the device of the machine.
        solver: the solver. A start that does not converge is tried again with half the step; see `Settling`.
        meter: receives the number of starts done.

    Raises:
        UsageError: if there is no start, or starts have another size than the machine.

    >>> from restore.priors import RBM
    >>> black_or_white = RBM.binary(torch.full((8, 1), 4.0), torch.full((8,), -2.0), torch.full((1,), -16.0))
    >>> starts = torch.tensor([[0.0] * 8, [0.0] * 7 + [1.0], [1.0] * 8])
    >>> found = tap_solutions(black_or_white, starts, TAP())
    >>> found.count, sorted(found.basins.tolist())
    (2, [1, 2])
    """
    size = machine.layers[0].size
    if starts.dim() != 2 or starts.shape[1] != size or not len(starts):
        raise UsageError(f"starts of shape {tuple(starts.shape)} do not fit; give (N >= 1, {size})")
    # In single precision rounding keeps a quarter of the starts from converging far enough.
    machine, starts = machine.to(torch.float64), starts.double()
    found = concatenate(list(_in_blocks(machine, starts, solver, meter)))
    usable = found.log_partition.isfinite()
    status = torch.where(usable, found.status, int(Status.DIVERGED))
    converged = (status == int(Status.CONVERGED)).nonzero().squeeze(1)
    # Sorted, so that the result does not depend on the order of the starts.
    ranked = converged[found.log_partition[converged].argsort(descending=True, stable=True)]
    index, place = distinct(found.means[0][ranked], SAME)
    led_to = torch.full_like(status, -1)
    led_to[ranked] = place
    chosen = ranked[index]
    return Solutions(tuple(mean[chosen] for mean in found.means), found.log_partition[chosen], led_to, status)


def _in_blocks(machine: BoltzmannMachine, starts: Tensor, solver: LayeredMap, meter: Meter) -> Iterator[Solution]:
    done = 0
    for block in starts.split(BLOCK):
        yield Settling(solver).solve(machine, block)
        done += len(block)
        meter(done)


def distinct(points: Tensor, tolerance: float, norm: float = torch.inf) -> tuple[Tensor, Tensor]:
    """The points (N, D) that repeat no earlier one, (S,), and the place of the nearest of these for every point, (N,).

    Two points are the same if the norm of their difference, by default its largest coordinate, is at most the
    tolerance. Points have to be either much closer than that or much farther apart, as approximate fixed points are;
    else the count depends on their order. Time and memory grow with N·S, not with N².
    """
    points = points.float()
    index = torch.zeros(0, dtype=torch.int64, device=points.device)
    for first in range(0, len(points), COMPARED):
        block = points[first : first + COMPARED]
        known = (torch.cdist(block, points[index], norm) <= tolerance).any(1)
        rest = (~known).nonzero().squeeze(1)
        among = torch.cdist(block[rest], block[rest], norm) <= tolerance
        repeats = torch.tril(among, diagonal=-1).any(1)
        index = torch.cat([index, first + rest[~repeats]])
    nearest = (
        [torch.cdist(block, points[index], norm).argmin(1) for block in points.split(COMPARED)] if len(points) else []
    )
    return index, torch.cat(nearest) if nearest else index
