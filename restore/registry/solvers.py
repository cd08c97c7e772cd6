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
        fully_visible: whether it solves machines without hidden units.
        mixture: whether it solves mixtures of Gaussians, and nothing else.
        any_units: whether it solves machines of any units in any number of layers; if not, only bits in two layers.
        smooth: whether learners can differentiate through its iterations.
        starts: whether it can be given starts; if not, it starts by itself and needs no damping.
        evidence: whether its log Z is a sum over images; if not, it is the weight of one best state.
        graph_batch: how many images at a time suit an exported graph best; 0 if no graph can hold the solver.
        kernel: whether torch has a special kernel for it, which overtakes the graph for many images.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    fully_visible: bool = False
    mixture: bool = False
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


SOLVERS: Mapping[str, SolverKind] = MappingProxyType(
    {
        "tap": SolverKind("restore.solvers.tap:TAP", fully_visible=True, smooth=True, graph_batch=16),
        "mean_field": SolverKind(
            "restore.solvers.mean_field:MeanField", fully_visible=True, smooth=True, graph_batch=16
        ),
        "relaxed_bp": SolverKind("restore.solvers.messages.relaxed_bp:RelaxedBeliefPropagation"),
        "adaptive_tap": SolverKind("restore.solvers.adaptive_tap:AdaptiveTAP", fully_visible=True, graph_batch=0),
        "sum_product": _belief_propagation("sum", evidence=True),
        "max_product": _belief_propagation("max", evidence=False),
        "mixed_product": _belief_propagation("mixed", evidence=False),
        "exact": SolverKind(
            "restore.solvers.exact:Exact", mixture=True, any_units=False, starts=False, graph_batch=512
        ),
    }
)


def smooth_solvers() -> str:
    """The solvers that learners can differentiate through, in words."""
    return " or ".join(name for name, kind in SOLVERS.items() if kind.smooth)


def misfit(name: str, *, fully_visible: bool, mixture: bool, plain: bool) -> str:
    """Why a solver does not fit a machine, in words; empty if it does.

    Args:
        name: a key of `SOLVERS`.
        fully_visible: whether the machine has no hidden units.
        mixture: whether it is a mixture of Gaussians.
        plain: whether its units are bits, in at most two layers.
    """
    kind = SOLVERS[name]
    if mixture != kind.mixture:
        return "exact solves mixtures of Gaussians, and they have no other solver"
    if mixture:
        return ""
    if fully_visible and not kind.fully_visible:
        others = ", ".join(other for other in SOLVERS if SOLVERS[other].fully_visible)
        return f"solver of a fully visible machine is {others}, not {name}"
    return "" if plain or kind.any_units else f"{name} is for binary units in two layers; take tap"
