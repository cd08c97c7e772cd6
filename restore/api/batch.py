"""The answers about several images as one, in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.inference.restored import Found, Restored
from restore.marginals import Status


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RestoredBatch:
    """The answers about N images; `Restored` says what each attribute means.

    Attributes:
        estimate, means, deviations: (N, H, W); arrays of arrays if shapes differ.
        status, iterations, residual: (N,).
        model, engine: the names, each once, joined by commas.
        level, changed, flipped, bits: of each image; None if no image has one, a list if only some have.
        notes, doubt, remedy: of each image.
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
    level: list[Found | None] | None
    changed: np.ndarray | list[float | None] | None
    flipped: np.ndarray | list[float | None] | None
    bits: np.ndarray | list[float | None] | None
    notes: tuple[tuple[str, ...], ...]
    doubt: tuple[str, ...]
    remedy: tuple[str, ...]
    replaced: np.ndarray | None
    layers: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, answers: Sequence[Restored]) -> RestoredBatch:
        def every(name: str) -> list[Any]:
            return [getattr(answer, name) for answer in answers]

        def known(name: str) -> Any:
            values = every(name)
            if all(value is None for value in values):
                return None
            return values if None in values else np.array(values)

        def names(name: str) -> str:
            return ", ".join(dict.fromkeys(every(name)))

        whole = any(answer.replaced is None for answer in answers)
        return cls(
            estimate=_together(every("estimate")),
            means=_together(every("means")),
            deviations=_together(every("deviations")),
            status=np.array(every("status")),
            iterations=np.array(every("iterations")),
            residual=np.array(every("residual")),
            model=names("model"),
            engine=names("engine"),
            level=every("level") if any(every("level")) else None,
            changed=known("changed"),
            flipped=known("flipped"),
            bits=known("bits"),
            notes=tuple(every("notes")),
            doubt=tuple(every("doubt")),
            remedy=tuple(every("remedy")),
            replaced=None if whole else _together(every("replaced")),
            layers=tuple(_together(list(layer)) for layer in zip(*every("layers"), strict=False)),
        )

    def __repr__(self) -> str:
        size = "x".join(map(str, self.means.shape))
        ends = ", ".join(dict.fromkeys(Status(end).name.lower() for end in self.status))
        return f"RestoredBatch({size}, {ends}, model={self.model!r})"


def _together(values: list[np.ndarray]) -> np.ndarray:
    """Arrays of one shape as one, (N, ...), others as an array of arrays, (N,)."""
    if len({value.shape for value in values}) == 1:
        return np.stack(values)
    apart = np.empty(len(values), object)
    apart[:] = values
    return apart
