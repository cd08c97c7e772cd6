"""`restore train`: make a prior from images, or from a recipe."""

from __future__ import annotations

import shlex
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from restore.cli.options import Quiet, part, with_parts
from restore.cli.process.processes import launched_by, under_torchrun
from restore.console import progress, say
from restore.errors import shown
from restore.learning.options import TrainOptions
from restore.sizes import size_text

EXAMPLE = "Example:  restore train ./my-images --name parts   (then: restore denoise scan.png --model parts --p 0.1)"


def train(
    source: Annotated[
        str,
        typer.Argument(
            help="Images to learn from: a folder, an archive, an array file, or a named data set; or a recipe (TOML)."
        ),
    ],
    *,
    options: TrainOptions,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the prior. [NAME among your models]")
    ] = None,
    threads: Annotated[
        int, typer.Option(min=0, help="CPU threads; 0 for one on each processor. The exact result depends on them.")
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Train a prior on images, or as a recipe says; stop it at any time and continue with --resume.

    While it trains, `--model runs/NAME` restores with the best prior so far.
    """
    import time

    began = time.monotonic()
    recipe = None
    text = ""
    if Path(source).suffix == ".toml":
        from restore.learning.recipe.recipe import read_recipe

        options.check_recipe(source)
        recipe = read_recipe(Path(source))
        text = Path(source).read_text(encoding="utf-8")
    name = options.name or (recipe.name if recipe else Path(source).absolute().stem)

    from restore.learning.run.place import reserve
    from restore.zoo.search import check_name

    check_name(name)
    folder = options.run or Path("runs") / name
    target = reserve(name, output, options.overwrite, folder, options.resume)

    import torch

    from restore.inference.devices import pick_device
    from restore.learning.lesson import lesson_of
    from restore.learning.run.parallel import is_first
    from restore.learning.run.session import Clock
    from restore.learning.train import session_of, train_and_save

    if threads:
        torch.set_num_threads(threads)
    device = pick_device(options.device)
    lesson = lesson_of(recipe or source, options, text)
    for note in lesson.notes:
        say(f"{lesson.recipe.data.source}: {note}")
    with progress(name, 1.0, not quiet) as meter:
        session = session_of(
            options,
            folder,
            lesson,
            meter,
            target=target,
            lasting=True,
            command=_command(source, options, output, threads),
            again=f"`{_resuming()}`",
            clock=Clock(began=began),
        )
        trained = train_and_save(lesson, session, device, every=options.every)
    if is_first() and not quiet:
        header = trained.prior.description
        level = "" if header.task else f" --{'sigma' if header.grey else 'p'} auto"
        say(f"{target}: trained in {trained.seconds / 60:.1f} minutes")
        for line in trained.lines:
            say(line)
        say(f"{name}: `restore denoise scan.png --model {shlex.quote(str(output or name))}{level}` restores with it")


def _command(source: str, options: TrainOptions, output: Path | None, threads: int) -> str:
    """The command line that does the same, for the card."""
    typed = options.given | {"output": output, "threads": threads or None}
    typed |= {"shape": size_text(options.shape)} if options.shape else {}
    pairs = [(f"--{key.replace('_', '-')}", str(value)) for key, value in typed.items() if value is not None]
    return shlex.join([*launched_by(), "restore", "train", shown(source), *chain.from_iterable(pairs)])


def _resuming() -> str:
    """What was typed, with --resume."""
    words = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    return shown(shlex.join([*launched_by(), "restore", *words]))


train = under_torchrun(with_parts(train, options=part(TrainOptions)))
