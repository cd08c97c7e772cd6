"""The answers about several images as one, in arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restore.inference.decision.facts import Facts
from restore.inference.notebook import SHOWN, SHOWN_OF_MANY, html_of_several
from restore.inference.restored import Level, Restored
from restore.sizes import size_text

# The arrays of pixels, of which each answer keeps its part of the whole; and numbers that an answer may lack.
PIXELS = ("estimate", "means", "deviations")
NUMBERS = ("changed", "bits")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RestoredBatch:
    """The answers about N images; `Restored` says what each attribute means.

    Attributes:
        answers: of each image.
        estimate, means, deviations: (N, H, W); arrays of arrays if shapes differ.
        status, outcome: (N,), of `restore.status`.
        reason, facts: of each image.
        iterations, residual: (N,).
        model, engine: the names, each once, joined by commas.
        level: of each image; None if no image has one.
        changed, bits: (N,), NaN for images that have none; None if no image has one.
        notes, doubt, remedy: of each image.
        replaced: (N, H, W); None if all pixels of some image are replaced.
        lightened: of each image; None if no image has one.
        layers: (N, units) each.
        marks: of each image.
    """

    answers: tuple[Restored, ...]
    estimate: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    status: NDArray[np.object_]
    outcome: NDArray[np.object_]
    reason: tuple[str, ...]
    facts: tuple[Facts, ...]
    iterations: np.ndarray
    residual: np.ndarray
    model: str
    engine: str
    level: tuple[Level | None, ...] | None
    changed: NDArray[np.float64] | None
    bits: NDArray[np.float64] | None
    notes: tuple[tuple[str, ...], ...]
    doubt: tuple[str, ...]
    remedy: tuple[str, ...]
    replaced: np.ndarray | None
    lightened: tuple[np.ndarray | None, ...] | None
    layers: tuple[np.ndarray, ...]
    marks: tuple[Mapping[str, np.ndarray], ...]

    @classmethod
    def of(cls, answers: Sequence[Restored]) -> RestoredBatch:
        every = {field.name: tuple(getattr(answer, field.name) for answer in answers) for field in fields(Restored)}
        del every["observed"]
        lacking = [name for name, values in every.items() if all(value is None for value in values)]
        joined: dict[str, Any] = every | dict.fromkeys(lacking)
        joined |= {name: _together(every[name]) for name in (*PIXELS, "iterations", "residual")}
        joined |= {name: np.array(every[name], np.float64) for name in NUMBERS if joined[name] is not None}
        joined |= {name: ", ".join(dict.fromkeys(every[name])) for name in ("model", "engine")}
        joined["replaced"] = None if any(one is None for one in every["replaced"]) else _together(every["replaced"])
        joined["layers"] = tuple(_together(layer) for layer in zip(*every["layers"], strict=False))
        joined |= {name: np.array(every[name], object) for name in ("status", "outcome")}
        parts = (replace(one, **{name: joined[name][row] for name in PIXELS}) for row, one in enumerate(answers))
        return cls(answers=tuple(parts), **joined)

    def __repr__(self) -> str:
        size = f" of {size_text(self.means.shape[1:3])}" * (self.means.ndim > 1)
        ends = ", ".join(dict.fromkeys(map(str, self.status)))
        return f"RestoredBatch({len(self.means)}{size}, {ends}, model={self.model!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: how the images ended, and the first of them."""
        first = [answer.html(SHOWN // 2) for answer in self.answers[:SHOWN_OF_MANY]]
        return html_of_several([answer.status.sentence for answer in self.answers], first)


def _together(values: Sequence[Any]) -> np.ndarray:
    """Values of one shape as an array, others as an array of arrays."""
    if len({np.shape(value) for value in values}) == 1:
        return np.stack(values)
    apart = np.empty(len(values), object)
    apart[:] = values
    return apart
