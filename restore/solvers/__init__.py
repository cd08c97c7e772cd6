"""Solvers: deterministic fixed points and samplers that turn a machine into its marginals."""

from restore.registry import SOLVERS
from restore.solvers.adaptive_tap import AdaptiveTAP as AdaptiveTAP
from restore.solvers.contract import FixedPoint as FixedPoint
from restore.solvers.layered_map import LayeredMap as LayeredMap
from restore.solvers.mean_field import HardMeanField as HardMeanField
from restore.solvers.mean_field import MeanField as MeanField
from restore.solvers.messages.belief_propagation import BeliefPropagation as BeliefPropagation
from restore.solvers.messages.relaxed_bp import RelaxedBeliefPropagation as RelaxedBeliefPropagation
from restore.solvers.solution import Solution as Solution
from restore.solvers.starts import SeveralStarts as SeveralStarts
from restore.solvers.tap import TAP as TAP
from restore.solvers.two_sizes import TwoSizes as TwoSizes
from restore.solvers.up_and_down import UpAndDown as UpAndDown
from restore.zoo.inference import Inference


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
