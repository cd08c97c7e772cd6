"""Solvers: deterministic fixed points and samplers that turn a machine into its marginals."""

from restore.registry import SOLVERS
from restore.solvers.adaptive_tap import AdaptiveTAP
from restore.solvers.contract import FixedPoint
from restore.solvers.layered_map import LayeredMap
from restore.solvers.mean_field import MeanField
from restore.solvers.messages.belief_propagation import BeliefPropagation
from restore.solvers.messages.relaxed_bp import RelaxedBeliefPropagation
from restore.solvers.samplers.gibbs import Gibbs
from restore.solvers.solution import Solution
from restore.solvers.starts import SeveralStarts
from restore.solvers.tap import TAP
from restore.zoo.inference import Inference

__all__ = [
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


def solver_of(settings: Inference) -> FixedPoint:
    """The solver that a prior restores with.

    >>> solver_of(Inference("mean_field", damping=0.5))
    MeanField(max_iter=1000, tol=0.01, damping=0.5)
    """
    kind = SOLVERS[settings.solver]
    made: FixedPoint = kind.load()(
        **kind.settings, max_iter=settings.max_iter, tol=settings.tol, damping=settings.damping
    )
    return made
