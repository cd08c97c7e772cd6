"""Solvers: deterministic fixed points and samplers that turn a machine into its marginals."""

from collections.abc import Callable
from functools import partial

from restore.description import Inference
from restore.solvers.adaptive_tap import AdaptiveTAP
from restore.solvers.belief_propagation import BeliefPropagation
from restore.solvers.gibbs import Gibbs
from restore.solvers.layered_map import LayeredMap
from restore.solvers.mean_field import MeanField
from restore.solvers.relaxed_bp import RelaxedBeliefPropagation
from restore.solvers.solution import Solution
from restore.solvers.starts import SeveralStarts
from restore.solvers.tap import TAP

__all__ = [
    "FIXED_POINTS",
    "TAP",
    "AdaptiveTAP",
    "BeliefPropagation",
    "FixedPoint",
    "Gibbs",
    "LayeredMap",
    "MeanField",
    "RelaxedBeliefPropagation",
    "SeveralStarts",
    "Solution",
    "solver_of",
]

FixedPoint = LayeredMap | RelaxedBeliefPropagation | AdaptiveTAP | BeliefPropagation

# The fixed points a prior's description can name; each is made with max_iter, tol and damping.
FIXED_POINTS: dict[str, Callable[..., FixedPoint]] = {
    "tap": TAP,
    "mean_field": MeanField,
    "relaxed_bp": RelaxedBeliefPropagation,
    "adaptive_tap": AdaptiveTAP,
    "sum_product": partial(BeliefPropagation, "sum"),
    "max_product": partial(BeliefPropagation, "max"),
    "mixed_product": partial(BeliefPropagation, "mixed"),
}


def solver_of(settings: Inference) -> FixedPoint:
    """The fixed point that a prior restores with."""
    return FIXED_POINTS[settings.solver](max_iter=settings.max_iter, tol=settings.tol, damping=settings.damping)
