"""What has a name here: unit types, solvers, learners. Each stands in one table, once.

Files, recipes, options and messages read these tables. An entry says what has to be known of a thing before it is
loaded, so that none of them loads torch.
"""

from restore.registry.learners import FAMILIES, LEARNERS
from restore.registry.solvers import SOLVERS, SolverKind, misfit
from restore.registry.units import PIXELS, UNITS, UnitKind

__all__ = ["FAMILIES", "LEARNERS", "PIXELS", "SOLVERS", "UNITS", "SolverKind", "UnitKind", "misfit"]
