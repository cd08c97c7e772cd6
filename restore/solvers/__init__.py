"""Solvers: deterministic fixed points and samplers that turn a machine into its marginals."""

from restore.solvers.belief_propagation import BeliefPropagation
from restore.solvers.gibbs import Gibbs
from restore.solvers.layered_map import LayeredMap
from restore.solvers.mean_field import MeanField
from restore.solvers.solution import Solution, Status
from restore.solvers.starts import SeveralStarts
from restore.solvers.tap import TAP

__all__ = [
    "FIXED_POINTS",
    "TAP",
    "BeliefPropagation",
    "Gibbs",
    "LayeredMap",
    "MeanField",
    "SeveralStarts",
    "Solution",
    "Status",
]

# The fixed points a prior's description can name.
FIXED_POINTS: dict[str, type[LayeredMap]] = {"tap": TAP, "mean_field": MeanField}
