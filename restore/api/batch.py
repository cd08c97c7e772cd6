"""The answers about several images as one, in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from restore.inference.restored import Level, Restored
from restore.status import Status


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RestoredBatch:
    """The answers about N images; `Restored` says what each attribute means.

    Attributes:
        estimate, means, deviations: (N, H, W); arrays of arrays if shapes differ.
        status, iterations, residual: (N,).
        model, engine: the names, each once, joined by commas.
        level, changed, flipped, bits: of each image; None if no image has one, a list if only some have.
        notes, doubt, remedy: of each image.
        lightened: as `level`.
        replaced: (N, H, W); None if all pixels of some image are replaced.
        layers: (N, units) each.
    """

    estimate: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    status: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    model: str
    engine: str
    level: list[Level | None] | None
    changed: np.ndarray | list[float | None] | None
    flipped: np.ndarray | list[float | None] | None
    bits: np.ndarray | list[float | None] | None
    notes: tuple[tuple[str, ...], ...]
    doubt: tuple[str, ...]
    remedy: tuple[str, ...]
    replaced: np.ndarray | None
    lightened: np.ndarray | list[np.ndarray | None] | None
    layers: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, answers: Sequence[Restored]) -> RestoredBatch:
        every = {field.name: [getattr(answer, field.name) for answer in answers] for field in fields(Restored)}
        level, layers, replaced, _ = (every.pop(name) for name in ("level", "layers", "replaced", "observed"))
        joined: dict[str, Any] = {name: _together(values) for name, values in every.items()}
        joined |= {name: tuple(every[name]) for name in ("notes", "doubt", "remedy")}
        joined |= {name: ", ".join(dict.fromkeys(every[name])) for name in ("model", "engine")}
        return cls(
            level=level if any(level) else None,
            layers=tuple(_together(list(layer)) for layer in zip(*layers, strict=False)),
            replaced=None if any(pixels is None for pixels in replaced) else _together(replaced),
            **joined,
        )

    def __repr__(self) -> str:
        size = "x".join(map(str, self.means.shape))
        ends = ", ".join(dict.fromkeys(Status(end).name.lower() for end in self.status))
        return f"RestoredBatch({size}, {ends}, model={self.model!r})"


def _together(values: list[Any]) -> Any:
    """Values of one shape as an array, others as an array of arrays; a list if some are None, and None if all are."""
    if any(value is None for value in values):
        return None if all(value is None for value in values) else values
    if len({np.shape(value) for value in values}) == 1:
        return np.stack(values)
    apart = np.empty(len(values), object)
    apart[:] = values
    return apart
