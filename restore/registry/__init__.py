"""What has a name here: unit types, solvers. Each stands in one table, with what is known of it before it is loaded.

Files, recipes, options and messages read these tables, and none of them loads torch.
"""

from restore.registry.solvers import SOLVERS, SolverKind, solvers_for
from restore.registry.units import PIXELS, UNITS, UnitKind

__all__ = ["PIXELS", "SOLVERS", "UNITS", "SolverKind", "UnitKind", "solvers_for"]
