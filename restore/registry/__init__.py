"""The names of unit types and solvers, each in one table; and the entries of learners in the tables of families.

Files, recipes, options and messages read these tables. An entry holds what must be known about a thing before it is
loaded, so that the tables do not load torch.
"""

from restore.registry.learners import Learner, Offer
from restore.registry.solvers import SOLVERS, SolverKind, smooth_solvers
from restore.registry.units import PIXELS, UNITS, UnitKind

__all__ = [
    "PIXELS",
    "SOLVERS",
    "UNITS",
    "Learner",
    "Offer",
    "SolverKind",
    "UnitKind",
    "smooth_solvers",
]
