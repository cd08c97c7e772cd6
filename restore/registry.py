"""Tables of unit types, solvers and noise levels, by their names in recipes, weights files and options.

An entry holds the facts that are needed before loading, so that nothing here loads torch. A new unit type is
a file in `restore/units/` that fulfils `units/contract.py`, and a line in `UNITS`; a new solver is one in
`restore/solvers/` that fulfils `solvers/contract.py`, and a line in `SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Entry:
    """An entry of a table.

    Attributes:
        target: the module and the name in it, as in "restore.units.spin:Spin".
    """

    target: str

    def load(self) -> Any:
        return resolve_name(self.target)


@dataclass(frozen=True)
class UnitKind(Entry):
    """A unit type; `target` names the function that makes a layer from parameters.

    Attributes:
        parameters: its natural parameters, each with its value in a unit that prefers no value.
        bits: True if the values are 0 and 1.
        grey: True if the values are grey levels from 0 to 1, so that pixels can be such units.
    """

    parameters: Mapping[str, float]
    bits: bool = False
    grey: bool = False


# An unbounded unit has a distribution only with some curvature.
_BOUNDED, _UNBOUNDED = {"bias": 0.0, "quadratic": 0.0}, {"bias": 0.0, "quadratic": 1.0}
_SPIKE = {"presence": 0.0}

UNITS: Mapping[str, UnitKind] = MappingProxyType(
    {
        "bernoulli": UnitKind("restore.units.bernoulli:Bernoulli", {"bias": 0.0}, bits=True),
        "spin": UnitKind("restore.units.spin:Spin", {"bias": 0.0}),
        "gaussian": UnitKind("restore.units.gaussian:Gaussian", _UNBOUNDED),
        "rectified": UnitKind("restore.units.rectified:Rectified", _UNBOUNDED),
        "gauss-bernoulli": UnitKind("restore.units.spiked:spiked_gaussian", _SPIKE | _UNBOUNDED),
        "truncated-gaussian": UnitKind("restore.units.truncated_gaussian:TruncatedGaussian", _BOUNDED, grey=True),
        "truncated-gauss-bernoulli": UnitKind(
            "restore.units.spiked:spiked_truncated_gaussian", _SPIKE | _BOUNDED, grey=True
        ),
    }
)

# The types that pixels can have: black or white, or grey levels.
PIXEL_UNITS: tuple[str, ...] = tuple(name for name, kind in UNITS.items() if kind.bits or kind.grey)


@dataclass(frozen=True)
class SolverKind(Entry):
    """A solver; `target` names its class, which takes max_iter, tol and damping.

    Attributes:
        settings: its other arguments.
        structures: of the machines that it solves, as in `restore.families.Family`.
        any_units: True if it solves machines of any units in any number of layers; otherwise only bits in two layers.
        smooth: True if learners can differentiate through its iterations.
        starts: True if it takes starts; otherwise it starts by itself and needs no damping.
        graph_batch: best number of images at a time for an exported graph; 0 if no graph can hold the solver.
        coarser: how many times smaller a page is where its machine also reads it so; 1 for machines of any kind.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    structures: tuple[str, ...] = ("layered",)
    any_units: bool = True
    smooth: bool = False
    starts: bool = True
    # Measured with the published priors. Messages of one image fill a processor's caches; of means, only several images
    # keep it busy.
    graph_batch: int = 2
    coarser: int = 1


# The class of the solvers by belief propagation, which differ by their kind.
_MESSAGES = "restore.solvers.messages.belief_propagation:BeliefPropagation"
# Means alone serve pixels that are coupled with each other, too.
_PAIRS = ("layered", "pairwise")

SOLVERS: Mapping[str, SolverKind] = MappingProxyType(
    {
        "tap": SolverKind("restore.solvers.tap:TAP", structures=_PAIRS, smooth=True, graph_batch=16),
        "mean_field": SolverKind(
            "restore.solvers.mean_field:MeanField", structures=_PAIRS, smooth=True, graph_batch=16
        ),
        "hard_mean_field": SolverKind(
            "restore.solvers.mean_field:HardMeanField", structures=_PAIRS, smooth=True, graph_batch=16
        ),
        "up_and_down": SolverKind("restore.solvers.up_and_down:UpAndDown", smooth=True, graph_batch=16),
        "two_sizes": SolverKind("restore.solvers.two_sizes:TwoSizes", smooth=True, graph_batch=16, coarser=2),
        "relaxed_bp": SolverKind("restore.solvers.messages.relaxed_bp:RelaxedBeliefPropagation"),
        "adaptive_tap": SolverKind("restore.solvers.adaptive_tap:AdaptiveTAP", structures=_PAIRS, graph_batch=0),
        "sum_product": SolverKind(_MESSAGES, {"kind": "sum"}, any_units=False, starts=False),
        "max_product": SolverKind(_MESSAGES, {"kind": "max"}, any_units=False, starts=False),
        "mixed_product": SolverKind(_MESSAGES, {"kind": "mixed"}, any_units=False, starts=False),
        "exact": SolverKind("restore.solvers.exact:Exact", structures=("mixture",), starts=False, graph_batch=512),
    }
)


def smooth_solvers() -> str:
    """Names of the solvers that learners can differentiate through, as a text."""
    return " or ".join(name for name, kind in SOLVERS.items() if kind.smooth)


@dataclass(frozen=True)
class LevelOption:
    """The option of a noise level: its texts for messages and `--help`, its special words, and what it is of."""

    noun: str
    words: str
    metavar: str
    help: str
    # The default of the level, by command.
    defaults: Mapping[str, str] = field(default_factory=dict)


# The levels of `restore.channels.damage.Damage`, by its fields.
LEVELS = {
    "p": LevelOption(
        "flipped pixels",
        "a flip probability in [0, 1] such as 0.1 or 10%, auto or scan",
        "FLOAT|auto|scan",
        "Share of flipped pixels, from 0 to 1 (for priors of grey images: of pixels turned black or white); scan: read "
        "each pixel's grey level.",
        {"denoise": "estimated from the image", "complete": "0: visible pixels stay as they are"},
    ),
    "sigma": LevelOption(
        "Gaussian noise",
        "a standard deviation above 0 and of at most 1, with black 0 and white 1, or auto",
        "FLOAT|auto",
        "Standard deviation of Gaussian noise, where black is 0 and white is 1; auto estimates it. For grey images.",
    ),
}


@dataclass(frozen=True)
class MarkWords:
    """How marks of a kind are called, one and many of them."""

    one: str
    many: str

    def counted(self, count: int) -> str:
        """Their number in words.

        >>> MARKS["dots"].counted(1)
        '1 pattern of dots'
        """
        return f"{count} {self.one if count == 1 else self.many}"


# The kinds of marks that `restore.inference.marks` finds, in the order in which they are looked for.
MARKS = {
    "border": MarkWords("black border", "black borders"),
    "dots": MarkWords("pattern of dots", "patterns of dots"),
    "lines": MarkWords("line", "lines"),
    "specks": MarkWords("speck", "specks"),
}
