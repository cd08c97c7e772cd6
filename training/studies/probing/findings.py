"""The numbers found by a probe of one prior."""

from __future__ import annotations

from dataclasses import dataclass

from probing.solutions import Solutions
from probing.verdict import alone, share, verdict, warnings


@dataclass(frozen=True)
class Findings:
    """The results of a probe.

    Attributes:
        model: name of the prior.
        epoch: epoch of its training, for a prior kept during a run; None for others.
        starts, converged, unfinished, diverged: how many starts there were, and how they ended; see `Solutions`.
        solutions: number of distinct solutions.
        share: solutions per start that converged; None if none did.
        alone: starts that share their solution with no other.
        free_energy: the prior's: the plain average over the solutions; None if there are none.
        free_energies: of each solution, increasing.
        basins: how many starts led to each solution.
        verdict: one sentence.
        warnings: sentences on what is wrong.
        seconds: wall-clock time.
    """

    model: str
    epoch: int | None
    starts: int
    converged: int
    unfinished: int
    diverged: int
    solutions: int
    share: float | None
    alone: int
    free_energy: float | None
    free_energies: tuple[float, ...]
    basins: tuple[int, ...]
    verdict: str
    warnings: tuple[str, ...]
    seconds: float

    @classmethod
    def of(cls, model: str, epoch: int | None, solutions: Solutions, seconds: float) -> Findings:
        return cls(
            model,
            epoch,
            solutions.starts,
            solutions.converged,
            solutions.unfinished,
            solutions.diverged,
            solutions.count,
            share(solutions),
            alone(solutions),
            solutions.helmholtz,
            tuple(solutions.free_energies.tolist()),
            tuple(solutions.basins.tolist()),
            verdict(solutions),
            warnings(solutions),
            seconds,
        )

    def as_text(self) -> str:
        """A few lines for people; free energies in nats."""
        lines = [f"{self.model}: {self.verdict}, in {self.seconds:.1f} s"]
        if self.free_energy is not None:
            low, high = self.free_energies[0], self.free_energies[-1]
            lines.append(f"  free energy {self.free_energy:.2f} on average, {low:.2f} ... {high:.2f}")
            largest = ", ".join(map(str, sorted(self.basins, reverse=True)[:5]))
            lines.append(f"  largest basins: {largest} starts; {self.alone} starts have one to themselves")
        return "\n".join(lines)
