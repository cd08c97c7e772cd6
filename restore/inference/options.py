"""How pictures are to be restored: the options that the command, Python and the server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

from restore.errors import UsageError, option, remedy, shown
from restore.registry import MARKS, SOLVERS
from restore.sizes import DEFAULT_MAX_PIXELS, Fit

EngineName = Literal["auto", "onnx", "torch"]


class Levels(TypedDict, total=False):
    """The levels beside p, as arguments."""

    sigma: float | Literal["auto"] | None


def _help(panel: str, text: str) -> dict[str, str]:
    """What `--help` and Python's documentation say of an option, and the panel of `--help` that shows it."""
    return {"panel": panel, "help": text}


_MODEL = _help(
    "Prior",
    "Name or path of a prior, a model of pictures of one kind; auto takes the one that predicts each image best.",
)
_FIT = _help("Prior", "Restore images of another size than the prior's in overlapping tiles, or resized by at most 2.")
_FORCE = _help("Prior", "Restore even what no prior recognises, and resize by any factor.")
_INVERT = _help("Prior", "Invert the image for the prior, and the result back; or not. [found for each image]")
_REMOVE = _help(
    "Marks",
    f"Remove marks of these kinds, and change nothing else, but read a grey page: some of {','.join(MARKS)}, or all; "
    "none to look for none. "
    "[specks and dots that can hardly be part of a page of print]",
)
_SPECKS = _help("Marks", "Remove specks of at most this number of pixels. [found for each image, with --remove specks]")
_STRICT = _help("Results", "Fail where no restoration can be trusted, instead of returning the image as it came.")
_SOFT = _help(
    "Results", "Write grey levels: of a page, ink as dark as it was, on white; else the probability of white."
)
_ENGINE = _help("Computing", "onnx starts at once; auto takes it if the prior has a graph, else torch.")
_DEVICE = _help("Computing", "cpu (as auto) or cuda[:N]; in onnxruntime also coreml or directml[:N].")
_SOLVER = _help("Computing", f"Another solver than the prior's own, in torch: {', '.join(SOLVERS)}.")
_MEMORY = _help("Computing", "Memory for messages or matrices of a solver, in torch. [2G]")
_PIXELS = _help("Computing", "Refuse larger images before decoding them.")


def polarity(invert: bool) -> str:
    """The option of the polarity, as it was given.

    >>> polarity(False)
    'invert=False'
    """
    return remedy("--invert" if invert else "--no-invert", f"invert={invert}")


def kinds_of(text: str | None) -> tuple[str, ...]:
    """The kinds of marks that a text names, in the order of `MARKS`.

    Raises:
        UsageError: if one is unknown.

    >>> kinds_of("specks, dots"), kinds_of("all"), kinds_of("none")
    (('dots', 'specks'), ('border', 'dots', 'lines', 'specks'), ())
    """
    if not isinstance(text, str | None):
        raise UsageError(f"is a text such as dots,specks, not {text!r}", option("remove"))
    names = [] if text is None or text == "none" else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in (*MARKS, "all")]:
        known = f"is some of {', '.join(MARKS)}, or all, or none"
        raise UsageError(f"{known}, not {shown(unknown[0]) or 'nothing'}", option("remove"))
    return tuple(name for name in MARKS if name in names or "all" in names)


# Which picture of a file is meant.
FRAME = "Take only this frame or page of a file that holds several, counted from 0."


@dataclass(frozen=True)
class Options:
    """How to restore, beside what is known of the damage; each field says in its metadata what it is for."""

    model: str = field(default="auto", metadata=_MODEL)
    fit: Fit = field(default="tile", metadata=_FIT)
    force: bool = field(default=False, metadata=_FORCE)
    invert: bool | None = field(default=None, metadata=_INVERT)
    soft: bool = field(default=False, metadata=_SOFT)
    strict: bool = field(default=False, metadata=_STRICT)
    remove: str | None = field(default=None, metadata=_REMOVE)
    specks: int | None = field(default=None, metadata=_SPECKS)
    engine: EngineName = field(default="auto", metadata=_ENGINE)
    device: str = field(default="auto", metadata=_DEVICE)
    solver: str | None = field(default=None, metadata=_SOLVER)
    max_memory: int | None = field(default=None, metadata=_MEMORY)
    max_pixels: int = field(default=DEFAULT_MAX_PIXELS, metadata=_PIXELS)

    def __post_init__(self) -> None:
        if self.fit not in get_args(Fit):
            raise UsageError(f"{option('fit')} must be one of {', '.join(get_args(Fit))}, not {self.fit!r}")
        for name in ("force", "soft", "strict", "invert"):
            value = getattr(self, name)
            if not (isinstance(value, bool) or (value is None and name == "invert")):
                raise UsageError(f"is True or False, not {value!r}", option(name))
        if self.specks is not None and (type(self.specks) is not int or self.specks < 1):
            raise UsageError(
                f"is a whole number of pixels of at least 1, not {shown(str(self.specks))}", option("specks")
            )
        kinds_of(self.remove)
        if type(self.max_pixels) is not int or self.max_pixels < 1:
            raise UsageError(f"{option('max_pixels')} must be a whole number of at least 1, not {self.max_pixels!r}")

    @property
    def marks(self) -> tuple[str, ...]:
        """The kinds of marks to remove; none where nothing is said of them."""
        named = kinds_of(self.remove)
        return tuple(kind for kind in MARKS if kind in named or (kind == "specks" and self.specks is not None))
