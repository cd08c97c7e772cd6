"""Unit types by their names in recipes and weights files.

A new type is a file in `restore/units/` that fulfils `units/contract.py`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from restore.registry.entry import Entry


@dataclass(frozen=True)
class UnitKind(Entry):
    """A unit type; `place` names what makes a layer from parameters.

    Attributes:
        parameters: its natural parameters, each with its value in a unit that prefers no value.
        bits: whether the values are 0 and 1.
        grey: whether the values are grey levels from 0 to 1, so that pixels can be such units.
        atom: whether 0 has a probability, not only a density.
    """

    parameters: Mapping[str, float]
    bits: bool = False
    grey: bool = False
    atom: bool = False


# An unbounded unit has a distribution only with some curvature.
_BOUNDED, _UNBOUNDED = {"bias": 0.0, "quadratic": 0.0}, {"bias": 0.0, "quadratic": 1.0}
_SPIKE = {"presence": 0.0}

UNITS: Mapping[str, UnitKind] = MappingProxyType(
    {
        "bernoulli": UnitKind("restore.units.bernoulli:Bernoulli", {"bias": 0.0}, bits=True),
        "spin": UnitKind("restore.units.spin:Spin", {"bias": 0.0}),
        "gaussian": UnitKind("restore.units.gaussian:Gaussian", _UNBOUNDED),
        "gauss-bernoulli": UnitKind("restore.units.spiked:spiked_gaussian", _SPIKE | _UNBOUNDED, atom=True),
        "truncated-gaussian": UnitKind("restore.units.truncated_gaussian:TruncatedGaussian", _BOUNDED, grey=True),
        "truncated-gauss-bernoulli": UnitKind(
            "restore.units.spiked:spiked_truncated_gaussian", _SPIKE | _BOUNDED, grey=True, atom=True
        ),
    }
)

# The types that pixels can have: black or white, or grey levels.
PIXELS: tuple[str, ...] = tuple(name for name, kind in UNITS.items() if kind.bits or kind.grey)
