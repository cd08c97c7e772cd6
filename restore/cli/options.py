"""Options that several commands share, each defined once, and texts that become values."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from restore.errors import shown
from restore.inference.options import FRAME, LEVELS, Options
from restore.registry import SOLVERS
from restore.sizes import DEFAULT_MAX_PIXELS as DEFAULT_MAX_PIXELS

# The panel of --help for what comes out.
RESULTS = "Results"


def memory_size(text: str) -> int:
    """Bytes in a text such as 500M, 4G or 2GiB."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise typer.BadParameter(f"{shown(text)} is no size; give one such as 500M or 4G")
    return size


def image_shape(text: str) -> tuple[int, int]:
    """Height and width in a text such as 28x28."""
    height, mark, width = text.partition("x")
    if not (mark and height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise typer.BadParameter(f"{shown(text)} is no HEIGHTxWIDTH in pixels, such as 28x28")
    return int(height), int(width)


def priors(incomplete: str) -> list[str]:
    """Names of priors, for the shell to complete."""
    from restore import zoo

    return [folder.name for folder in zoo.folders() if folder.name.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Names of methods of training, for the shell to complete."""
    from restore.learning.learners import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def tasks(incomplete: str) -> list[str]:
    """Kinds of damage, for the shell to complete."""
    from restore.channels.registry import FORMS

    names = dict.fromkeys(form.shown.partition(":")[0] for form in FORMS)
    return [f"{name}:" for name in names if name.startswith(incomplete)]


def _solver(name: str) -> str:
    if name not in SOLVERS:
        raise typer.BadParameter(f"{shown(name)} is not one of {', '.join(SOLVERS)}")
    return name


# What typer must know of a field of `Options` beside its help text.
_MORE: dict[str, dict[str, Any]] = {
    "model": {"autocompletion": priors},
    "solver": {"metavar": "NAME", "parser": _solver},
    "max_memory": {"metavar": "SIZE", "parser": memory_size},
    "max_pixels": {"min": 1},
}


def _annotated(name: str, *flags: str) -> Any:
    """The type of a field of `Options`, with what typer is told about it."""
    field = next(each for each in fields(Options) if each.name == name)
    more = _MORE.get(name, {})
    kind = str | None if "parser" in more else get_type_hints(Options)[name]
    flags = (f"--{name.replace('_', '-')}", *flags)
    panel = field.metadata["panel"]
    return Annotated[kind, typer.Option(*flags, help=field.metadata["help"], rich_help_panel=panel, **more)]


Model = Annotated[str, typer.Argument(help="Name or folder of a prior.", autocompletion=priors)]
Images = Annotated[list[str], typer.Argument(help="Images, folders of images, or - for stdin.", show_default=False)]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.", rich_help_panel=RESULTS)]
SkipExisting = Annotated[
    bool, typer.Option("--skip-existing", help="Skip inputs whose output exists.", rich_help_panel=RESULTS)
]
Frame = Annotated[int | None, typer.Option(help=FRAME)]
MaxPixels = _annotated("max_pixels")
MaxPixelsOfSets = Annotated[
    int, typer.Option("--max-pixels", help="Refuse larger images, and sets of more than twenty times as many pixels.")
]
Device = _annotated("device")
Engine = _annotated("engine")
MaxMemory = _annotated("max_memory")
Solver = _annotated("solver")
Shape = Annotated[
    Any, typer.Option(parser=image_shape, metavar="HEIGHTxWIDTH", help="Size of the images. [their own, or square]")
]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of all randomness.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, one object a line.", rich_help_panel=RESULTS)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.", rich_help_panel=RESULTS)]


@dataclass(frozen=True)
class Results:
    """Where results go, and what is reported of them."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File, folder (ending with /), or - for stdout. [NAME.restored.png; TIFF and PDF stay what they are]",
            rich_help_panel=RESULTS,
        ),
    ] = None
    overwrite: Overwrite = False
    skip_existing: SkipExisting = False
    uncertainty: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the standard deviation of every pixel as an image: black is 0, white is 0.5, the maximum.",
            rich_help_panel=RESULTS,
        ),
    ] = None
    frame: Frame = None
    json: Json = False
    quiet: Quiet = False


def restoring(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `LEVELS`, `Options` and `Results` in place of `damage`, `options` and `results`.

    Typer reads them from its signature.
    """
    parts = {"options": Options, "results": Results}
    kinds = get_type_hints(Results, include_extras=True)
    kinds |= {each.name: _annotated(each.name, *["-m"][: each.name == "model"]) for each in fields(Options)}
    own = inspect.signature(command, eval_str=True)
    parameters = [each for each in own.parameters.values() if each.name not in (*parts, "damage")]
    for name, level in LEVELS.items():
        help = f"{level.help} [{level.defaults[command.__name__]}]" if level.defaults else level.help
        kind = Annotated[str | None, typer.Option(f"--{name}", metavar=level.metavar, help=help)]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    for field in (*fields(Options), *fields(Results)):
        default, kind = field.default, kinds[field.name]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        )

    @functools.wraps(command)
    def with_parts(**given: Any) -> None:
        made = {
            name: part(**{each.name: given.pop(each.name) for each in fields(part)}) for name, part in parts.items()
        }
        from restore.inference.damage import Damage

        damage = Damage.of(**{name: given.pop(name) for name in LEVELS})
        command(**given, **made, damage=damage)

    shaped: Any = with_parts
    shaped.__signature__ = own.replace(parameters=parameters)
    shaped.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_parts
