"""Options that several commands share, each defined once, and checks of their values before anything is read."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from restore.errors import UsageError, option, shown
from restore.inference.options import Options
from restore.registry import SOLVERS
from restore.sizes import DEFAULT_MAX_PIXELS as DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from restore.inference.damage import Damage

PRIOR, RESULTS, COMPUTING = "Prior", "Results", "Computing"


def memory_size(text: str | None) -> int | None:
    """Bytes in a text such as 500M, 4G or 2GiB; None for None."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise UsageError(f"{option('max_memory')} {shown(text)} is no size; give one such as 500M or 4G")
    return size


def _solver(name: str) -> str:
    if name not in SOLVERS:
        raise typer.BadParameter(f"{shown(name)} is not one of {', '.join(SOLVERS)}")
    return name


_SIZE, _SOLVERS = "Memory for messages or matrices of a solver, such as 500M or 4G [2G].", "|".join(SOLVERS)

# The options of `Options`: help text, panel, and what typer is told beside it.
HELP: dict[str, tuple[str, str, dict[str, Any]]] = {
    "model": ("Name or folder of a prior; auto picks the one that predicts the image best.", PRIOR, {}),
    "fit": ("Images of another size than the prior's: in tiles, or resized by a factor of 2 at most.", PRIOR, {}),
    "force": ("Restore what no prior recognises too, and resize by any factor.", PRIOR, {}),
    "invert": ("Dark strokes on light: invert for the prior, and back. [found from the image]", PRIOR, {}),
    "soft": ("Write posterior probabilities as grey levels; models of grey images always do.", RESULTS, {}),
    "engine": ("onnx starts at once, torch knows every device; auto picks.", COMPUTING, {}),
    "device": ("auto, cpu or cuda[:N].", COMPUTING, {}),
    "solver": ("Another solver than the prior's own, in torch.", COMPUTING, {"metavar": _SOLVERS, "parser": _solver}),
    "max_memory": (_SIZE, COMPUTING, {"metavar": "SIZE", "parser": memory_size}),
    "max_pixels": ("Refuse larger images.", COMPUTING, {"min": 1}),
}
SHORT = {"model": ("-m",)}

Images = Annotated[list[str], typer.Argument(help="Images, folders of images, or - for stdin.", show_default=False)]
Sigma = Annotated[
    str | None,
    typer.Option(
        metavar="FLOAT|auto",
        help="Standard deviation of Gaussian noise, black being 0 and white 1, or auto: for models of grey images.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.", rich_help_panel=RESULTS)]
SkipExisting = Annotated[
    bool, typer.Option("--skip-existing", help="Skip inputs whose output exists.", rich_help_panel=RESULTS)
]
Frame = Annotated[int | None, typer.Option(help="Only this frame or page of files that hold several, from 0.")]
MaxPixels = Annotated[int, typer.Option(help=HELP["max_pixels"][0], min=1)]
MaxPixelsOfSets = Annotated[
    int, typer.Option("--max-pixels", help="Refuse larger images, and sets of more than twenty times as many pixels.")
]
MaxMemory = Annotated[str | None, typer.Option(metavar="SIZE", help=_SIZE)]
SolverOption = Annotated[str | None, typer.Option("--solver", metavar=_SOLVERS, parser=_solver, help=HELP["solver"][0])]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per image on stdout.", rich_help_panel=RESULTS)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.", rich_help_panel=RESULTS)]


@dataclass(frozen=True)
class Results:
    """Where results go, and what is reported of them."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File, folder (ending with /), or - for stdout [NAME.restored.png; of TIFF and PDF, the same].",
            rich_help_panel=RESULTS,
        ),
    ] = None
    overwrite: Overwrite = False
    skip_existing: SkipExisting = False
    uncertainty: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the posterior standard deviation: black is 0, white is 0.5, its maximum.",
            rich_help_panel=RESULTS,
        ),
    ] = None
    frame: Frame = None
    json: Json = False
    quiet: Quiet = False


def _annotated(name: str, kind: Any) -> Any:
    """The type of a field of `Options`, with what typer is told about it."""
    text, panel, more = HELP[name]
    flag = f"--{name.replace('_', '-')}"
    kind = str | None if "parser" in more else kind
    return Annotated[kind, typer.Option(flag, *SHORT.get(name, ()), help=text, rich_help_panel=panel, **more)]


def restoring(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Options` and `Results` in place of `options` and `results`.

    Typer reads them from its signature.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    hints = get_type_hints(Options)
    told = get_type_hints(Results, include_extras=True) | {name: _annotated(name, hints[name]) for name in HELP}
    parts = {"options": Options, "results": Results}
    shared = [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=told[field.name])
        for part in parts.values()
        for field in fields(part)
    ]
    own = inspect.signature(command, eval_str=True)
    parameters = [*(one for one in own.parameters.values() if one.name not in parts), *shared]

    @functools.wraps(command)
    def with_parts(**given: Any) -> None:
        made = {
            name: part(**{field.name: given.pop(field.name) for field in fields(part)}) for name, part in parts.items()
        }
        command(**given, **made)

    seen: Any = with_parts
    seen.__signature__ = own.replace(parameters=parameters)
    seen.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_parts


def image_shape(text: str) -> tuple[int, int]:
    """Height and width in a text such as 28x28."""
    height, mark, width = text.partition("x")
    if not (mark and height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise UsageError(f"{option('shape')} must be HEIGHTxWIDTH in pixels, such as 28x28, not {shown(text)}")
    return int(height), int(width)


def damage_of(p: str | None, sigma: str | None) -> Damage:
    """The damage that the user describes, checked before anything is read."""
    from restore.inference.damage import Damage

    levels: dict[str, Any] = {"p": p, "sigma": sigma}
    for name, most in (("p", 2), ("sigma", 1)):
        text = levels[name]
        if text is None or text == "auto" or (name, text) == ("p", "scan"):
            continue
        try:
            values = tuple(map(float, text.split(",")))
        except ValueError:
            values = ()
        if not 1 <= len(values) <= most:
            kinds = {"p": "a number, two (of white and of black pixels), auto or scan", "sigma": "a number or auto"}
            raise UsageError(f"{option(name)} is {kinds[name]}, not {shown(text)}")
        levels[name] = values if len(values) > 1 else values[0]
    return Damage.of(**levels)
