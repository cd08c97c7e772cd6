"""Options that several commands share, each defined once, and texts that become values."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_type_hints

import typer

from restore.errors import shown
from restore.inference.options import FRAME, Options
from restore.registry import LEVELS, SOLVERS
from restore.sizes import DEFAULT_MAX_PIXELS as DEFAULT_MAX_PIXELS

# The panel of --help for what comes out.
RESULTS = "Results"


def memory_size(text: str) -> int:
    """Bytes in a text such as 500M, 4G or 2GiB."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")) if match else 0
    if size < 1:
        raise typer.BadParameter(f"{shown(text)} is not a size; give one such as 500M or 4G")
    return size


def image_shape(text: str) -> tuple[int, int]:
    """Height and width in a text such as 28x20, width first as in all sizes that are printed."""
    width, mark, height = text.partition("x")
    if not (mark and height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise typer.BadParameter(f"{shown(text)} is not WIDTHxHEIGHT in pixels, such as 28x20")
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
    from restore.channels.task import FORMS

    names = dict.fromkeys(form.shown.partition(":")[0] for form in FORMS)
    return [f"{name}:" for name in names if name.startswith(incomplete)]


def _solver(name: str) -> str:
    if name not in SOLVERS:
        raise typer.BadParameter(f"{shown(name)} is not one of {', '.join(SOLVERS)}")
    return name


def _hidden(text: str) -> int | Literal["auto"]:
    if text != "auto" and not text.isdecimal():
        raise typer.BadParameter(f"{shown(text)} is neither a whole number nor auto")
    return "auto" if text == "auto" else int(text)


def part_of_all(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise typer.BadParameter(f"{shown(text)} is not K/N, such as 2/8, with K from 1 to N")
    return int(number), int(count)


# What typer must know of a field of `Options` or `TrainOptions` beside its help text.
_MORE: dict[str, dict[str, Any]] = {
    "model": {"autocompletion": priors},
    "solver": {"metavar": "NAME", "parser": _solver},
    "max_memory": {"metavar": "SIZE", "parser": memory_size},
    "max_pixels": {"min": 1},
    "remove": {"metavar": "KINDS"},
    "specks": {"min": 1, "metavar": "PIXELS"},
    "method": {"autocompletion": methods},
    "hidden": {"metavar": "NUMBER|auto", "parser": _hidden},
    "task": {"autocompletion": tasks},
    "shape": {"metavar": "WIDTHxHEIGHT", "parser": image_shape},
    "every": {"min": 0},
}
_SHORT = {"model": ("-m",)}
_result = functools.partial(typer.Option, rich_help_panel=RESULTS)


def annotated(kind: type) -> dict[str, Any]:
    """The types of the fields of options that have a help text, annotated for typer."""
    kinds = get_type_hints(kind)
    made = {}
    for field in fields(kind):
        if "help" not in field.metadata:
            continue
        help = field.metadata["help"]
        default = field.metadata.get("default")
        more = {"help": f"{help} [{default}]" if default else help, **_MORE.get(field.name, {})}
        more["rich_help_panel"] = field.metadata.get("panel")
        name = field.name.replace("_", "-")
        # What is found unless it is given can be denied, too.
        flags = [
            f"--{name}/--no-{name}" if kinds[field.name] == bool | None else f"--{name}",
            *_SHORT.get(field.name, ()),
        ]
        annotation = str | None if "parser" in more else kinds[field.name]
        made[field.name] = Annotated[annotation, typer.Option(*flags, **more)]
    return made


_OPTIONS = annotated(Options)
Model = Annotated[str, typer.Argument(help="Name or folder of a prior.", autocompletion=priors)]
Images = Annotated[list[str], typer.Argument(help="Images, folders of images, or - for stdin.", show_default=False)]
Overwrite = Annotated[bool, _result("--overwrite", help="Replace existing outputs.")]
SkipExisting = Annotated[bool, _result("--skip-existing", help="Skip inputs whose output exists.")]
Frame = Annotated[int | None, typer.Option(help=FRAME)]
MaxPixels = _OPTIONS["max_pixels"]
MaxPixelsOfSets = Annotated[
    int, typer.Option("--max-pixels", help="Refuse larger images, and sets of more than twenty times as many pixels.")
]
Device = _OPTIONS["device"]
Engine = _OPTIONS["engine"]
MaxMemory = _OPTIONS["max_memory"]
Shape = Annotated[
    Any, typer.Option(parser=image_shape, metavar="WIDTHxHEIGHT", help="Size of the images. [their own, or square]")
]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of all randomness.")]
Json = Annotated[bool, _result("--json", help="Print JSON on stdout, one object a line.")]
Quiet = Annotated[bool, _result("--quiet", "-q", help="Print no progress and no notes.")]
Debug = Annotated[bool, _result("--debug", help="Show where an internal fault happened.")]


@dataclass(frozen=True)
class Results:
    """Where results go, and what is reported of them."""

    output: Annotated[
        str | None,
        _result(
            "--output",
            "-o",
            help="File, folder (ending with /), or - for stdout. [NAME.restored.png; TIFF and PDF stay what they are]",
        ),
    ] = None
    overwrite: Overwrite = False
    skip_existing: SkipExisting = False
    part: Annotated[
        Any,
        _result(
            metavar="K/N",
            parser=part_of_all,
            help="Restore only part K of N of the images, for one of N machines; names decide which.",
        ),
    ] = None
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes of one thread each.", rich_help_panel="Computing")
    ] = 1
    uncertainty: Annotated[
        str | None,
        _result(metavar="FILE", help="Write each pixel's standard deviation as an image: black is 0, white 0.5."),
    ] = None
    mask_output: Annotated[
        str | None,
        _result(
            metavar="FILE", help="Write where marks were removed as an image, white = removed, as --mask takes it."
        ),
    ] = None
    dry_run: Annotated[bool, _result("--dry-run", help="Restore, say what would be written, write nothing.")] = False
    frame: Frame = None
    json: Annotated[
        bool,
        _result(
            "--json",
            help="Print JSON on stdout, one object a line. bits: how well the prior predicts pixels hidden from it, as "
            "the mean log2 of their probability; 0 is certain, and a coin for each pixel has -1.",
        ),
    ] = False
    quiet: Quiet = False
    debug: Debug = False


def restoring(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `LEVELS`, `Options` and `Results` in place of `damage`, `options` and `results`."""
    levels = []
    for name, level in LEVELS.items():
        help = f"{level.help} [{level.defaults[command.__name__]}]" if level.defaults else level.help
        kind = Annotated[str | None, typer.Option(f"--{name}", metavar=level.metavar, help=help)]
        levels.append(_parameter(name, None, kind))

    def damage(**levels: Any) -> Any:
        from restore.channels.damage import Damage

        return Damage.of(**levels)

    results = [
        _parameter(field.name, field.default, kind)
        for field, kind in zip(fields(Results), get_type_hints(Results, include_extras=True).values(), strict=True)
    ]
    return with_parts(command, damage=(damage, levels), options=part(Options), results=(Results, results))


Part = tuple[Callable[..., Any], list[inspect.Parameter]]


def part(kind: type) -> Part:
    """Options with help texts, as a part of a command: what makes them, and the parameters that typer reads."""
    defaults = {field.name: field.default for field in fields(kind)}
    return kind, [_parameter(name, defaults[name], annotation) for name, annotation in annotated(kind).items()]


def with_parts(command: Callable[..., None], **parts: Part) -> Callable[..., None]:
    """Give a command, in place of each of some parameters, those from which it is made.

    Typer reads them from the signature.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += parts[parameter.name][1] if parameter.name in parts else [parameter]

    @functools.wraps(command)
    def whole(**values: Any) -> None:
        made = {}
        for name, (make, entries) in parts.items():
            made[name] = make(**{entry.name: values.pop(entry.name) for entry in entries})
        command(**values, **made)

    shaped: Any = whole
    shaped.__signature__ = signature.replace(parameters=parameters)
    shaped.__annotations__ = {one.name: one.annotation for one in parameters}
    return whole


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
