"""How a prior restores: its solver and the settings of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from restore.errors import UsageError
from restore.registry import SOLVERS
from restore.zoo import limits

# Predictions of pixels are compared after so many iterations, or at this tolerance. On 24 digits the levels found are
# as good as with a prior's own settings, for a third of the time.
QUICK_ITERATIONS, QUICK_TOL = 20, 0.1


def calmer(damping: float, tol: float) -> tuple[float, float]:
    """Damping and tolerance for another try of what did not converge: half the step, so changes are half as large."""
    return (1 + damping) / 2, tol / 2


@dataclass(frozen=True)
class Inference:
    """How a prior restores: its solver, and how many starts it gives the solver.

    Attributes:
        solver: a key of `SOLVERS`.
        max_iter: iteration limit per start.
        tol: a start has converged when no mean moves by more than this in one iteration; for convolutional priors, when
            pixels do not on average.
        damping: share of the old value kept at each update, in [0, 1).
        modes: how many of its own modes the prior carries as possible starts.
        starts: starts per image: the pointwise estimate, and the modes nearest to the evidence. With 0 the solver
            starts by itself, as belief propagation must.
        trust: mean strength of the evidence, in log-odds per pixel, from which log Z fully decides between solutions.
            Under weaker evidence their weight is exp(log Z) to a proportional power: then mostly the prior's own log Z
            tells solutions apart, and its error is as large as the differences.
        clear: images are solved from the pointwise estimate alone if their evidence leaves at most this open, in bits
            per pixel, in 0 ... 1, wherever it says least; see `restore.solvers.starts.open_bits`.
    """

    solver: str = "tap"
    max_iter: int = 1000
    tol: float = 1e-2
    damping: float = 0.3
    modes: int = 2000
    starts: int = 11
    trust: float = 1.5
    clear: float = 0.0

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise UsageError(f"solver must be one of {', '.join(SOLVERS)}, not {self.solver!r}")
        if not 1 <= self.max_iter <= limits.ITERATIONS:
            raise UsageError(f"max_iter must lie in 1 ... {limits.ITERATIONS}, not {self.max_iter}")
        if not 0 <= self.starts <= limits.STARTS or (self.starts == 0 and self.modes):
            raise UsageError(
                f"starts must lie in 0 ... {limits.STARTS}, and be 0 only without modes, not {self.starts}"
            )
        if self.starts and not SOLVERS[self.solver].starts:
            raise UsageError(f"{self.solver} starts by itself: set modes and starts to 0")
        if not 0 < self.trust < math.inf:
            raise UsageError(f"trust must be positive and finite, not {self.trust}")
        if not 0 <= self.clear <= 1:
            raise UsageError(f"clear must lie in 0 ... 1 bits per pixel, not {self.clear}")
        if not 0 <= self.modes <= limits.MODES:
            raise UsageError(f"modes must lie in 0 ... {limits.MODES}, not {self.modes}")
        if not 0 <= self.tol < math.inf or not 0 <= self.damping < 1:
            raise UsageError(f"tol must be finite and >= 0, and damping in [0, 1), not {self.tol} and {self.damping}")

    def quickly(self) -> Inference:
        """Settings good enough to compare predictions of pixels with those of other priors."""
        return replace(self, tol=max(self.tol, QUICK_TOL), max_iter=min(self.max_iter, QUICK_ITERATIONS))
