"""`restore train`: make a prior from images, or from a recipe."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from restore.cli import options
from restore.cli.process.processes import launched_by, with_others
from restore.console import say
from restore.errors import shown

if TYPE_CHECKING:
    from restore.learning.lesson import Lesson
    from restore.learning.run.session import Passed
    from restore.progress import Meter

EXAMPLE = "Example:  restore train ./my-images --name parts   (then: restore denoise scan.png --model parts --p 0.1)"


def _hidden(text: str) -> int | Literal["auto"]:
    if text != "auto" and not text.isdecimal():
        raise typer.BadParameter(f"{shown(text)} is neither a whole number nor auto")
    return "auto" if text == "auto" else int(text)


@with_others
def train(
    source: Annotated[
        str,
        typer.Argument(
            help="Images to learn from: a folder, an archive, an array file, or a named data set; or a recipe (TOML)."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name for the prior. [that of the images, or the recipe's]")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="convolutional, tap, fw, pcd, cd, fvbm, principal, crbm-bp, crbm-mssvm, ... [by the images]",
            autocompletion=options.methods,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            parser=_hidden,
            metavar="NUMBER|auto",
            help="Number of hidden units; auto adds units as long as they help. [by the images]",
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the images. [by their number]")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time limit for everything; training ends with the best prior so far.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Learn to undo one kind of damage, such as flip:0.1.", autocompletion=options.tasks),
    ] = None,
    shape: options.Shape = None,
    patches: Annotated[int | None, typer.Option(help="Learn from this many random patches of larger images.")] = None,
    levels: Annotated[
        Literal["auto", "binary", "grey"] | None, typer.Option(help="Learn black and white, or grey levels. [auto]")
    ] = None,
    held_out: Annotated[float | None, typer.Option(help="Share of the files to judge the prior by. [0.1]")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness. [0]")] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder of named data sets; with a recipe, also other images: a folder, an idx file or .npy."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the prior. [NAME among your models]")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints and log.jsonl. [runs/NAME]", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint; --minutes and --threads may change.")
    ] = False,
    every: Annotated[int, typer.Option(min=0, help="Also keep the prior every N epochs, in epochs/ of the run.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run and the prior of this name, if there are any.")
    ] = False,
    threads: Annotated[
        int,
        typer.Option(
            min=0,
            help="CPU threads; 0 for one on each processor. The exact result depends on them.",
        ),
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_bad: Annotated[int, typer.Option(help="Unreadable images of a folder to skip before giving up.")] = 0,
    max_pixels: options.MaxPixelsOfSets = options.DEFAULT_MAX_PIXELS,
    quiet: options.Quiet = False,
) -> None:
    """Train a prior on images, or as a recipe says; stop it at any time and continue with --resume.

    While it trains, `--model runs/NAME` restores with the best prior so far.
    """
    import time

    began = time.monotonic()
    for_all = {"name": name, "hidden": hidden, "epochs": epochs, "minutes": minutes}
    of_images = {
        "method": method,
        "task": task,
        "shape": shape,
        "patches": patches,
        "levels": levels,
        "held_out": held_out,
        "seed": seed,
    }
    of_images = {key: value for key, value in of_images.items() if value is not None}
    made = _by_recipe if Path(source).suffix == ".toml" else _by_plan
    called, lesson_of = made(source, for_all, of_images, data, {"max_bad": max_bad, "max_pixels": max_pixels})

    from restore.learning.run.place import reserve

    size = shape and f"{shape[0]}x{shape[1]}"
    typed = for_all | of_images | {"shape": size, "data": data, "output": output, "threads": threads or None}
    pairs = [(f"--{key.replace('_', '-')}", str(value)) for key, value in typed.items() if value is not None]
    command = shlex.join([*launched_by(), "restore", "train", shown(source), *chain.from_iterable(pairs)])
    folder = run or Path("runs") / called
    words = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    again = f"`{shown(shlex.join([*launched_by(), 'restore', *words]))}`"
    place = reserve(called, output, overwrite=overwrite, run=folder, resume=resume, command=command, again=again)

    import torch

    from restore.devices import pick_device
    from restore.learning.run.parallel import is_first
    from restore.learning.run.session import Clock, Session
    from restore.learning.train import carry_out
    from restore.progress import progress

    if threads:
        torch.set_num_threads(threads)
    where, lesson = pick_device(device), lesson_of()
    for note in lesson.notes:
        say(f"{lesson.recipe.data.source}: {note}")
    with progress(called, 1.0, quiet=quiet) as meter:
        session = Session(
            folder,
            resume=resume,
            overwrite=overwrite,
            watch=watcher(meter, lesson),
            note=lambda said: meter(1.0, said),
            clock=Clock(began=began),
        )
        found = carry_out(lesson, place, session, where, every=every)
    if is_first() and not quiet:
        header = found.trained.prior.description
        level = "" if header.task else f" --{'sigma' if header.grey else 'p'} auto"
        say(f"{place.target}: trained in {found.seconds / 60:.1f} minutes")
        for line in found.lines:
            say(line)
        say(f"{called}: `restore denoise scan.png --model {shlex.quote(place.name)}{level}` restores with it")


def watcher(meter: Meter, lesson: Lesson) -> Callable[[Passed], None]:
    """Tell a meter with a total of 1 about training: epoch, the newest score and the best one."""
    recipe = lesson.recipe
    damage = recipe.training.watch or recipe.data.task
    judged = f"{'squared error' if recipe.prior.grey else 'wrong pixels'} after {damage}" if damage else "held out"
    newest, best = "", float("inf")

    def watch(passed: Passed) -> None:
        nonlocal newest, best
        if passed.score is not None:
            best = min(best, passed.score)
            newest = f", {judged} {passed.score:.5f}, best so far {best:.5f}"
        total = f" of at most {passed.total}" if passed.total else ""
        stage = f"{passed.stage}, " if passed.stage else ""
        meter(0.0 if passed.stage else passed.progress, f"{stage}{passed.done}{total}{newest}")

    return watch


def _by_recipe(
    source: str, given: dict[str, Any], of_images: dict[str, Any], data: str | None, limits: dict[str, Any]
) -> tuple[str, Callable[[], Lesson]]:
    """The name of a recipe's prior, and a function that reads its images; options in `given` override the recipe."""
    from dataclasses import replace

    from restore.errors import UsageError
    from restore.learning.recipe.recipe import read_recipe

    if of_images:
        options = ", ".join(f"--{option.replace('_', '-')}" for option in of_images)
        raise UsageError(f"is a recipe, which settles that; change it there and leave {options} out", source)
    recipe = read_recipe(Path(source))
    prior = recipe.prior
    if given["hidden"] is not None:
        prior = replace(prior, hidden=given["hidden"], filled=prior.filled if given["hidden"] == "auto" else 0)
    length = {key: given[key] for key in ("epochs", "minutes") if given[key] is not None}
    # A time limit of another run does not apply to this one.
    length |= {"last": 0} if length else {}
    recipe = replace(recipe, name=given["name"] or recipe.name, training=replace(recipe.training, **length))

    def lesson() -> Lesson:
        from restore.data.sets.named import folders
        from restore.learning.lesson import read_lesson

        root = Path(data) if data is not None and folders(Path(data), recipe.data.source) else None
        other = data if root is None else None
        return read_lesson(
            recipe, Path(source).read_text(encoding="utf-8"), prior=prior, source=other, root=root, **limits
        )

    return recipe.name, lesson


def _by_plan(
    source: str, given: dict[str, Any], of_images: dict[str, Any], data: str | None, limits: dict[str, Any]
) -> tuple[str, Callable[[], Lesson]]:
    """As `_by_recipe`, for images, whose recipe a plan makes."""
    from restore.learning.recipe.plan import Wishes
    from restore.zoo.search import check_name

    name = given["name"] or Path(source).absolute().stem
    check_name(name)
    asked = {key: of_images[key] for key in ("method", "task") if key in of_images}
    gathering = {key: value for key, value in of_images.items() if key not in asked}
    wishes = Wishes(hidden=given["hidden"], epochs=given["epochs"], minutes=given["minutes"], **asked)

    def lesson() -> Lesson:
        from restore.data import Wanted
        from restore.learning.lesson import planned_lesson

        root = None if data is None else Path(data)
        return planned_lesson(source, name, wishes, shown_as=source, wanted=Wanted(**gathering), root=root, **limits)

    return name, lesson
