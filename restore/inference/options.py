"""How pictures are to be restored: the options that the command, Python and the server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

from restore.errors import UsageError, option
from restore.sizes import DEFAULT_MAX_PIXELS, Fit

EngineName = Literal["auto", "onnx", "torch"]


@dataclass(frozen=True)
class Described:
    """How callers give a noise level: in words, for `--help` with the words that stand for one, and what it is."""

    words: str
    metavar: str
    help: str


# The levels of `restore.inference.damage.Damage`, by its fields.
LEVELS = {
    "p": Described(
        "a flip probability in [0, 1] such as 0.1 or 10%, auto or scan",
        "FLOAT|auto|scan",
        "Probability that a visible pixel is inverted (of grey images: black or white); scan: as its grey level says. "
        "[denoise: found from the image; complete: none is]",
    ),
    "sigma": Described(
        "a standard deviation, a finite number above 0, or auto",
        "FLOAT|auto",
        "Standard deviation of Gaussian noise, black being 0 and white 1, or auto: for models of grey images.",
    ),
    "specks": Described(
        "a share of the pixels above 0 and of at most 0.2, such as 0.01 or 1%, or auto",
        "FLOAT|auto",
        "Remove specks of 2 to 8 pixels, alone, that cover this share of the image; auto: it is found.",
    ),
}


class Levels(TypedDict, total=False):
    """The levels beside p, as arguments."""

    sigma: float | Literal["auto"] | None
    specks: float | Literal["auto"] | None


def _help(panel: str, text: str) -> dict[str, str]:
    """What `--help` and Python's documentation say of an option, and the panel of `--help` that shows it."""
    return {"panel": panel, "help": text}


_MODEL = _help("Prior", "Name or path of a prior; auto picks the one that predicts each image best.")
_FIT = _help("Prior", "Images of another size than the prior's: in tiles that overlap, or resized by 2 at most.")
_FORCE = _help("Prior", "Restore what no prior recognises too, and resize by any factor.")
_INVERT = _help("Prior", "Dark strokes on light: invert for the prior, and back. [found from the image]")
_SOFT = _help("Results", "Give posterior probabilities as grey levels; priors of grey images always do.")
_ENGINE = _help("Computing", "onnx starts at once, torch knows every device; auto picks what is done first.")
_DEVICE = _help("Computing", "auto, cpu or cuda[:N]; in onnxruntime also coreml or directml[:N].")
_SOLVER = _help("Computing", "Another solver than the prior's own, in torch.")
_MEMORY = _help("Computing", "Bytes for messages or matrices of a solver, in torch; 2 GiB by default.")
_PIXELS = _help("Computing", "Refuse larger images before decoding them.")


# Which picture of a file is meant.
FRAME = "Only this frame or page of files that hold several, from 0."


@dataclass(frozen=True)
class Options:
    """How to restore, beside what is known of the damage; each field says in its metadata what it is for."""

    model: str = field(default="auto", metadata=_MODEL)
    fit: Fit = field(default="tile", metadata=_FIT)
    force: bool = field(default=False, metadata=_FORCE)
    invert: bool = field(default=False, metadata=_INVERT)
    soft: bool = field(default=False, metadata=_SOFT)
    engine: EngineName = field(default="auto", metadata=_ENGINE)
    device: str = field(default="auto", metadata=_DEVICE)
    solver: str | None = field(default=None, metadata=_SOLVER)
    max_memory: int | None = field(default=None, metadata=_MEMORY)
    max_pixels: int = field(default=DEFAULT_MAX_PIXELS, metadata=_PIXELS)

    def __post_init__(self) -> None:
        if self.fit not in get_args(Fit):
            raise UsageError(f"{option('fit')} must be one of {', '.join(get_args(Fit))}, not {self.fit!r}")
        if type(self.max_pixels) is not int or self.max_pixels < 1:
            raise UsageError(f"{option('max_pixels')} must be a whole number of at least 1, not {self.max_pixels!r}")
