"""An entry of a registry: where a thing is, so that it is loaded only when used."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One named thing.

    Attributes:
        place: the module and the name in it, as in "restore.units.spin:Spin".
    """

    place: str

    def load(self) -> Any:
        return resolve_name(self.place)
