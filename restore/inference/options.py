"""How pictures are to be restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from restore.sizes import DEFAULT_MAX_PIXELS, Fit

EngineName = Literal["auto", "onnx", "torch"]


@dataclass(frozen=True)
class Options:
    """How to restore, beside the damage.

    Attributes:
        model: name or path of a prior; "auto" for the one that predicts the picture best.
        fit: pictures of another size than the prior's are restored in tiles ("tile"), or resized ("resize").
        force: restore also what no prior recognises, and resize by any factor.
        invert: invert pictures for the prior, and the results back; else polarity is found where it is not told.
        soft: return posterior probabilities as grey levels, not black and white.
        engine: "onnx", "torch", or "auto" for the one that is done first.
        device: "auto", "cpu" or "cuda[:N]".
        solver: solve the prior with this, in torch; None for its own.
        max_memory: bytes that messages or matrices of a solver may take; None for its own limit.
        max_pixels: the most pixels of a picture.
    """

    model: str = "auto"
    fit: Fit = "tile"
    force: bool = False
    invert: bool = False
    soft: bool = False
    engine: EngineName = "auto"
    device: str = "auto"
    solver: str | None = None
    max_memory: int | None = None
    max_pixels: int = DEFAULT_MAX_PIXELS
