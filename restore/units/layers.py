"""Make layers of units by the names of their types in the registry."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from restore.registry import UNITS
from restore.units.contract import Units


def layer_of(kind: str, parameters: Mapping[str, Tensor]) -> Units:
    """A layer of a kind (a key of `UNITS`) from its natural parameters."""
    layer: Units = UNITS[kind].load()(**parameters)
    return layer


def blank(kind: str, size: int, like: Tensor) -> Units:
    """A layer of a kind (a key of `UNITS`) that prefers no value, with the type and device of `like`."""
    # A separate tensor for each parameter, because learners change them in place.
    return layer_of(kind, {name: like.new_full((size,), value) for name, value in UNITS[kind].parameters.items()})
