"""The solver of a prior and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from restore.errors import UsageError, require
from restore.registry import SOLVERS
from restore.zoo import limits
from restore.zoo.structure import check_ranges

# Accuracy: full for restoring, less for comparing predictions of priors.
Effort = Literal["full", "quick"]

# The default damping.
DAMPING = 0.3

# Limits of an iteration whose predictions of pixels are only compared. On 24 digits the levels found are
# as good as with a prior's own settings, for a third of the time.
QUICK_ITERATIONS = 20
QUICK_TOL = 0.1

# With trust of 0 no evidence counts, and with damping of 1 a solver stands still.
LEAST_TRUST = 1e-6
MOST_DAMPING = 1 - LEAST_TRUST


def calmer(damping: float, tol: float) -> tuple[float, float]:
    """Damping and tolerance for a second try of images that did not converge, with half the step."""
    return (1 + damping) / 2, tol / 2


@dataclass(frozen=True)
class Inference:
    """The solver of a prior, its settings and its starts.

    Attributes:
        solver: a key of `SOLVERS`.
        max_iter: iteration limit per start.
        tol: a start has converged when no mean moves by more than this in one iteration; for convolutional priors, and
            real-valued units under `hard_mean_field`, when pixels do not on average.
        damping: share of the old value kept at each update, in [0, 1).
        modes: number of its own modes that the prior carries as possible starts.
        starts: starts per image: the pointwise estimate, and the modes nearest to the evidence. With 0 the solver
            starts by itself, as belief propagation must.
        trust: mean strength of the evidence, in log-odds per pixel, from which log Z fully decides between solutions.
            Under weaker evidence their weight is exp(log Z) to a proportional power.
        clear: images are solved from the pointwise estimate alone if the evidence leaves at most this entropy, in bits
            per pixel, in 0 ... 1, in every window; see `restore.solvers.starts.open_bits`.
    """

    solver: str = "tap"
    max_iter: int = 1000
    tol: float = 1e-2
    damping: float = DAMPING
    modes: int = 2000
    starts: int = 11
    trust: float = 1.5
    clear: float = 0.0

    def __post_init__(self) -> None:
        require(self.solver in SOLVERS, f"solver must be one of {', '.join(SOLVERS)}, not {self.solver!r}")
        check_ranges(
            self,
            max_iter=(1, limits.ITERATIONS),
            tol=(0, limits.FINITE),
            damping=(0, MOST_DAMPING),
            modes=(0, limits.MODES),
            starts=(0, limits.MOST_STARTS),
            trust=(LEAST_TRUST, limits.FINITE),
            clear=(0, 1),
        )
        require(self.starts > 0 or not self.modes, "modes must be 0 as well, since starts is 0")
        if self.starts and not SOLVERS[self.solver].starts:
            raise UsageError(f"{self.solver} starts by itself: set modes and starts to 0")
