"""`restore train`: a recipe becomes a prior."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = "Example:  restore train training/tap-mnist-100.toml --data path/to/data -o my-prior"


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe (TOML); see training/ for those of the published priors.")],
    data: Annotated[
        str | None,
        typer.Option(help="Where the recipe's named data set lies, or other data: a folder of images, idx or .npy."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the prior [user model folder, by the name].")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints and log.jsonl [runs/NAME].", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint.")] = False,
    hidden: Annotated[
        str | None,
        typer.Option(help="Number of hidden units instead of the recipe's; auto grows as many as it takes."),
    ] = None,
    every: Annotated[
        int,
        typer.Option(min=0, help="Keep the prior every so many epochs too, in epochs/ of the run."),
    ] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a prior of the same name.")] = False,
    threads: Annotated[
        int, typer.Option(help="CPU threads; 0 takes torch's default. Part of what fixes the bits.")
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_bad: Annotated[int, typer.Option(help="Unreadable images of a folder to skip before giving up.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train a prior as a recipe says; stop it at any time and go on with --resume."""
    import shlex
    from dataclasses import asdict, replace

    from restore import zoo
    from restore.errors import OutputError, TrainingError, UsageError, shown
    from restore.files import write_atomically
    from restore.learning.recipe import read_recipe

    settings = read_recipe(recipe)
    shape = settings.prior if hidden is None else replace(settings.prior, hidden=_size(hidden))
    if threads < 0:
        raise UsageError(f"--threads must not be negative, not {threads}")
    target = output or zoo.user_folder() / settings.name
    if (target / zoo.WEIGHTS).exists() and not overwrite:
        raise OutputError(f"{target}: holds a prior already; give --overwrite or another -o")
    if output is None and (zoo.published_folder() / settings.name).exists():
        raise OutputError(f"{settings.name}: is the name of a published prior; choose another name, or give -o")

    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{shown(target)}: cannot be made ({fault.strerror}); choose another -o") from fault

    import torch

    from restore.data import as_pixels, load, varied
    from restore.data.named import folders
    from restore.devices import pick_device
    from restore.learning.card import write_card
    from restore.learning.pipeline import train as train_prior
    from restore.learning.run_folder import epoch_seconds
    from restore.progress import progress

    if threads:
        torch.set_num_threads(threads)
    where = pick_device(device)
    root = Path(data) if data is not None and folders(Path(data), settings.data.source) else None
    source = settings.data.source if data is None or root is not None else data
    dataset = load(source, split="train", root=root, max_bad=max_bad).first(settings.data.count)
    for note in dataset.notes:
        print(f"{source}: {note}", file=sys.stderr)
    table = replace(settings.data, source=source)
    if shape.hidden == "auto" and not table.validation:
        table = replace(table, validation=max(1, len(dataset.images) // 10))
    settings = replace(settings, data=table, prior=shape)
    learnt_from = varied(dataset.images, **asdict(settings.data.variations), seed=settings.seed)
    pixels = as_pixels(learnt_from, settings.manner, settings.data.threshold, settings.seed)
    images = torch.from_numpy(pixels).to(where)
    folder = run or Path("runs") / settings.name
    height, width = dataset.images.shape[1:]
    with progress(settings.name, settings.limit, quiet=quiet) as meter:
        trained = train_prior(
            settings,
            images,
            (height, width),
            folder,
            fingerprint=dataset.fingerprint,
            resume=resume,
            every=every,
            meter=meter,
        )
    if trained.verdict and not quiet:
        grown = trained.prior.description.hidden
        size = f"{grown} hidden units: " if grown else ""
        print(f"{settings.name}: {size}{trained.verdict}", file=sys.stderr)
    seconds = epoch_seconds(folder)
    words = ["restore", "train", str(recipe), "--threads", str(torch.get_num_threads())]
    words += ["--hidden", hidden] if hidden is not None else []
    words += ["--data", data] if data is not None else []
    words += ["-o", str(output)] if output is not None else []
    card = write_card(trained, settings, recipe.read_text(), shlex.join(words), len(images), seconds, str(where))
    zoo.save(target, trained.prior, card, TrainingError)
    try:
        from restore.export.packing import beside_weights
    except ModuleNotFoundError:
        # Only torch starts it then.
        pass
    else:
        write_atomically(target / zoo.GRAPH, beside_weights(target), TrainingError)
    if not quiet:
        print(f"{target}: trained in {seconds[-1] / 60:.1f} minutes", file=sys.stderr)


def _size(hidden: str) -> int | Literal["auto"]:
    """A number of hidden units as it was typed."""
    from restore.errors import UsageError, shown

    if hidden == "auto":
        return "auto"
    try:
        return int(hidden)
    except ValueError:
        raise UsageError(f"--hidden must be a whole number or auto, not {shown(hidden)}") from None
