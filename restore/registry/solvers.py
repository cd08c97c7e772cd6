"""Solvers that a prior can restore with, by their names in recipes, weights files and `--solver`.

A new solver is a file in `restore/solvers/` that fulfils `solvers/contract.py`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from restore.registry.entry import Entry


@dataclass(frozen=True)
class SolverKind(Entry):
    """A solver; `place` names its class, which takes max_iter, tol and damping.

    Attributes:
        settings: its other arguments.
        structures: how the units of machines that it solves are coupled, as in `restore.families.Family`.
        any_units: whether it solves machines of any units in any number of layers; if not, only bits in two layers.
        smooth: whether learners can differentiate through its iterations.
        starts: whether it can be given starts; if not, it starts by itself and needs no damping.
        evidence: whether its log Z is a sum over images; if not, it is the weight of one best state.
        graph_batch: how many images at a time suit an exported graph best; 0 if no graph can hold the solver.
        kernel: whether torch has a special kernel for it, which overtakes the graph for many images.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    structures: tuple[str, ...] = ("layered",)
    any_units: bool = True
    smooth: bool = False
    starts: bool = True
    evidence: bool = True
    # Measured with the published priors. Messages of one image fill a processor's caches; of means, only several images
    # keep it busy.
    graph_batch: int = 2
    kernel: bool = False


def _belief_propagation(kind: str, *, evidence: bool) -> SolverKind:
    return SolverKind(
        "restore.solvers.messages.belief_propagation:BeliefPropagation",
        {"kind": kind},
        any_units=False,
        starts=False,
        evidence=evidence,
        kernel=True,
    )


# Means alone serve pixels that are coupled with each other, too.
_PAIRS = ("layered", "pairwise")

SOLVERS: Mapping[str, SolverKind] = MappingProxyType(
    {
        "tap": SolverKind("restore.solvers.tap:TAP", structures=_PAIRS, smooth=True, graph_batch=16),
        "mean_field": SolverKind(
            "restore.solvers.mean_field:MeanField", structures=_PAIRS, smooth=True, graph_batch=16
        ),
        "relaxed_bp": SolverKind("restore.solvers.messages.relaxed_bp:RelaxedBeliefPropagation"),
        "adaptive_tap": SolverKind("restore.solvers.adaptive_tap:AdaptiveTAP", structures=_PAIRS, graph_batch=0),
        "sum_product": _belief_propagation("sum", evidence=True),
        "max_product": _belief_propagation("max", evidence=False),
        "mixed_product": _belief_propagation("mixed", evidence=False),
        "exact": SolverKind("restore.solvers.exact:Exact", structures=("mixture",), starts=False, graph_batch=512),
    }
)


def smooth_solvers() -> str:
    """The solvers that learners can differentiate through, in words."""
    return " or ".join(name for name, kind in SOLVERS.items() if kind.smooth)
