"""Options that several commands share, each defined once, and checks of their values before anything is read."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from restore.errors import UsageError, shown
from restore.images import DEFAULT_MAX_PIXELS
from restore.inference.damage import Damage
from restore.inference.open import Choice
from restore.registry import SOLVERS
from restore.sizes import Fit


def _solver(name: str) -> str:
    if name not in SOLVERS:
        raise typer.BadParameter(f"{shown(name)} is not one of {', '.join(SOLVERS)}")
    return name


Images = Annotated[list[str], typer.Argument(help="Images, folders of images, or - for stdin.", show_default=False)]
Model = Annotated[
    str, typer.Option(help="Name or folder of a prior; auto picks the one under which the image is most probable.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        help="File, folder (ending with /), or - for stdout [NAME.restored.png; of TIFF and PDF, the same].",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.")]
SkipExisting = Annotated[bool, typer.Option("--skip-existing", help="Skip inputs whose output exists.")]
FitOption = Annotated[
    Fit, typer.Option(help="Images of another size than the prior's: in windows, or resized by a factor of 2 at most.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Resize by more than that, and restore images that the prior cannot explain."),
]
Invert = Annotated[bool, typer.Option("--invert", help="Dark strokes on light: invert for the prior, and back.")]
Soft = Annotated[
    bool,
    typer.Option(
        "--soft",
        help="Write posterior probabilities as grey levels, not black and white; models of grey images always do.",
    ),
]
Uncertainty = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the posterior standard deviation: black is 0, white is 0.5, its maximum."),
]
Sigma = Annotated[
    str | None,
    typer.Option(
        metavar="FLOAT|auto",
        help="Standard deviation of Gaussian noise, black being 0 and white 1, or auto: for models of grey images.",
    ),
]
Frame = Annotated[int | None, typer.Option(help="Only this frame or page of files that hold several, from 0.")]
MaxPixels = Annotated[int, typer.Option(help="Refuse larger images.")]
MaxPixelsOfSets = Annotated[
    int, typer.Option("--max-pixels", help="Refuse larger images, and sets of more than twenty times as many pixels.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per image on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")]
Engine = Annotated[Choice, typer.Option(help="onnx starts at once, torch knows every device; auto picks.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")]
MaxMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory for messages or matrices of a solver, such as 500M or 4G [2G]."),
]
Workers = Annotated[
    int, typer.Option(min=1, max=256, help="Threads that read and write images while others are being restored.")
]
SolverOption = Annotated[
    str | None,
    typer.Option(
        "--solver",
        metavar="|".join(SOLVERS),
        parser=_solver,
        help="Solve the prior with this instead of its own solver, in torch.",
    ),
]


@dataclass(frozen=True)
class Settings:
    """The options that denoise and complete share."""

    model: Model = "auto"
    output: Output = None
    overwrite: Overwrite = False
    skip_existing: SkipExisting = False
    fit: FitOption = "tile"
    force: Force = False
    invert: Invert = False
    soft: Soft = False
    uncertainty: Uncertainty = None
    frame: Frame = None
    max_pixels: MaxPixels = DEFAULT_MAX_PIXELS
    json: Json = False
    quiet: Quiet = False
    engine: Engine = "auto"
    device: Device = "auto"
    max_memory: MaxMemory = None
    solver: SolverOption = None
    workers: Workers = 8


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Settings` instead of its parameter `settings`: typer reads its signature."""
    hints = get_type_hints(Settings, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(option.name, keyword, default=option.default, annotation=hints[option.name])
        for option in fields(Settings)
    ]
    own = inspect.signature(command, eval_str=True)
    parameters = [*(one for one in own.parameters.values() if one.name != "settings"), *shared]

    @functools.wraps(command)
    def told(**given: Any) -> None:
        settings = Settings(**{one.name: given.pop(one.name) for one in shared})
        command(**given, settings=settings)

    seen: Any = told
    seen.__signature__ = own.replace(parameters=parameters)
    seen.__annotations__ = {one.name: one.annotation for one in parameters}
    return told


def memory_size(text: str | None) -> int | None:
    """Bytes in a text such as 500M, 4G or 2GiB; None for None."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise UsageError(f"--max-memory {shown(text)} is no size; give one such as 500M or 4G")
    return size


def image_shape(text: str) -> tuple[int, int]:
    """Height and width in a text such as 28x28."""
    height, mark, width = text.partition("x")
    if not (mark and height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise UsageError(f"--shape must be HEIGHTxWIDTH in pixels, such as 28x28, not {shown(text)}")
    return int(height), int(width)


def damage_of(p: str | None, sigma: str | None) -> Damage:
    """The damage that the user describes, checked before anything is read."""
    return Damage.of(_rates(p), _level("--sigma", sigma))


def _rates(text: str | None) -> float | str | tuple[float, ...] | None:
    if text == "scan":
        return text
    if text is None or text.count(",") != 1:
        return _level("--p", text)
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise UsageError(
            f"--p is a number, two (of white and of black pixels), auto or scan, not {shown(text)}"
        ) from None


def _level(option: str, text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} is a number or auto, not {shown(text)}") from None
