"""The names of unit types, solvers and learners, each in one table.

Files, recipes, options and messages read these tables. An entry holds what must be known about a thing before it is
loaded, so that the tables do not load torch.
"""

from restore.registry.learners import FAMILIES, LEARNERS, Family
from restore.registry.solvers import SOLVERS, SolverKind, misfit, smooth_solvers
from restore.registry.units import PIXELS, UNITS, UnitKind

__all__ = [
    "FAMILIES",
    "LEARNERS",
    "PIXELS",
    "SOLVERS",
    "UNITS",
    "Family",
    "SolverKind",
    "UnitKind",
    "misfit",
    "smooth_solvers",
]
