"""Say in words what the number of solutions means (TAP machine, sec. VII.3)."""

from __future__ import annotations

from probing.solutions import MOSTLY, Solutions

# Above this share of solutions among the starts, fewer than two starts on average share a solution: this is what
# memorising looks like. The paper finds less than .1.
MEMORISING = 0.5

# With fewer starts most have their own solution in any prior that has learnt some dozen modes.
ENOUGH = 50

# With fewer starts there may also be just a hundred or two hundred modes: of 150 equally wide ones 200 starts find 110.
MANY = 400


def share(solutions: Solutions) -> float | None:
    """Distinct solutions per start that led to one; None if no start did."""
    return solutions.count / solutions.converged if solutions.converged else None


def alone(solutions: Solutions) -> int:
    """Starts that share their solution with no other.

    Among all that converged, their share estimates the probability that one more start finds a new solution (Good,
    1953). It detects countless solutions even if one wide basin takes most starts.
    """
    return int((solutions.basins == 1).sum())


def memorising(solutions: Solutions) -> bool:
    """Whether there are about as many solutions as starts, and enough starts to tell."""
    return solutions.converged >= ENOUGH and solutions.count > MEMORISING * solutions.converged


def verdict(solutions: Solutions) -> str:
    """One sentence on what the prior has learnt."""
    found = share(solutions)
    if found is None:
        return f"none of {solutions.starts} starts led to a solution: nothing can be said of what it has learnt"
    if solutions.count == 1 < solutions.converged:
        return f"1 solution from {solutions.converged} starts: it has learnt no modes"
    counted = f"{solutions.count} solutions from {solutions.converged} starts ({found:.1%})"
    if memorising(solutions):
        return f"{counted}: {_few_shared(solutions)}; few starts share a solution"
    if solutions.converged < ENOUGH:
        return f"{counted}: it has learnt modes, or memories; too few starts to tell"
    return f"{counted}: it has learnt modes that images share"


def _few_shared(solutions: Solutions) -> str:
    """What about as many solutions as starts may mean."""
    if solutions.converged < MANY:
        return f"memorising, or more modes than {solutions.converged} starts can tell"
    return "memorising, or a rough landscape"


def warnings(solutions: Solutions) -> tuple[str, ...]:
    """Sentences on what is wrong with a prior, or makes the results less certain."""
    said = []
    if memorising(solutions):
        said.append(f"{_few_shared(solutions)}: {solutions.count} solutions from {solutions.converged} starts")
    if solutions.converged < MOSTLY * solutions.starts:
        said.append(f"only {solutions.converged} of {solutions.starts} starts led to a solution ({solutions.failures})")
    if solutions.converged < ENOUGH:
        said.append(
            f"{solutions.converged} starts that converge cannot tell modes from memories; give {ENOUGH} or more"
        )
    return tuple(said)
