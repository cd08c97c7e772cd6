"""`restore probe`: show what a prior has learnt, by the solutions that images lead to, in pictures and one JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from restore.cli import options
from restore.cli.scoring.source import Source
from restore.console import say, tell
from restore.images import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from torch import Tensor

    from restore.zoo.description import Description

EXAMPLE = "Example:  restore probe tap-mnist-100 --data mnist -o tap-mnist-100-probe"


def probe(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior, or of a run of `restore train --every N`.")],
    data: Annotated[str, typer.Option(help="Data set by name, a folder or archive of images, an idx file or .npy.")],
    n: Annotated[int, typer.Option("--n", help="Images to start from, drawn from the data.")] = 1000,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to start from.")] = "train",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the draw.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the pictures and probe.json [MODEL-probe].")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier probe wrote there.")] = False,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what probe.json holds.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes and no progress.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_pixels: options.MaxPixelsOfSets = DEFAULT_MAX_PIXELS,
) -> None:
    """Look at what a prior has learnt: its distinct TAP solutions, their free energies, and its receptive fields."""
    from restore.errors import UsageError, shown

    if n < 2:
        raise UsageError(f"--n must be at least 2, not {n}: a probe compares where several images lead to")
    priors = _priors(model)
    target = output or Path(f"{Path(model).resolve().name}-probe")
    _check_target(target, overwrite)

    # Imported first, so that a missing library is reported before the work is done.
    import matplotlib.figure  # noqa: F401
    import sklearn.manifold  # noqa: F401 - `restore.cli.main` names a missing library

    from restore import zoo
    from restore.evaluation.probing import report
    from restore.evaluation.probing.findings import Findings
    from restore.evaluation.probing.solutions import tap_solutions
    from restore.inference.torch_engine import Engine
    from restore.progress import progress

    for _, folder in priors:
        zoo.describe(folder).check_unconditional("TAP solutions")
    engine = Engine.load(str(folder), device)
    source = Source(data, split, n, None, data_root, quiet, max_pixels)
    images = _drawn(source, engine.description, seed).to(engine.device)
    found: list[Findings] = []
    with progress(f"{model}: starts", len(priors) * len(images), quiet=quiet) as meter:
        for epoch, folder in priors:
            started, before = time.perf_counter(), len(found) * len(images)
            engine = Engine.load(str(folder), device)
            machine = engine.free_machine("TAP solutions")
            solutions = tap_solutions(machine, images, meter=lambda done, before=before: meter(before + done))
            seconds = time.perf_counter() - started
            found.append(Findings.of(engine.description.name, epoch, solutions, seconds))
    made = report.report(machine, solutions, images, engine.description.image_shape)
    settings = {"data": data, "split": split, "n": len(images), "seed": seed}
    content = report.as_json(found, settings | report.SOLVER, made.facts)
    _write(target, made.pictures | report.course(found) | {report.JSON: content.encode()})
    for sentence in () if quiet else (*made.notes, *found[-1].warnings):
        say(f"{model}: {sentence}")
    tell(content if json else "\n".join([*(entry.as_text() for entry in found), f"written to {shown(target)}"]))


def _priors(model: str) -> list[tuple[int | None, Path]]:
    """The folder of a prior, without an epoch; or those of the priors kept during a run, with their epochs."""
    from restore import zoo
    from restore.errors import ModelError, shown
    from restore.images.outputs import is_folder
    from restore.learning.pipeline import kept_epochs

    run = Path(model)
    # A run holds the best of its priors as well.
    kept = kept_epochs(run) if is_folder(run) else {}
    if kept:
        return [*kept.items()]
    try:
        return [(None, zoo.find(model))]
    except ModelError:
        if not is_folder(run):
            raise
        raise ModelError(
            f"{shown(model)}: holds neither a prior nor priors in epochs/; train with --every to keep some"
        ) from None


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written to, or holds an earlier probe, before any work."""
    from restore.errors import OutputError, shown
    from restore.evaluation.probing.report import FILES
    from restore.images.outputs import require_writable

    require_writable(target if target.exists() else target.parent)
    there = [name for name in FILES if (target / name).exists()]
    if there and not overwrite:
        raise OutputError(f"{shown(target / there[0])}: exists already; give --overwrite or another -o")


def _drawn(source: Source, about: Description, seed: int) -> Tensor:
    """As many random images of the data as were asked for, (N, D), as the prior knows them."""
    from dataclasses import replace

    import torch

    from restore.errors import InputError

    dataset = source.load()
    source.check_size(dataset, about)
    count = len(dataset.images)
    if count < 2:
        raise InputError(f"{source.data}: one image; a probe compares where several images lead to, so give more")
    assert source.n is not None
    if count < source.n:
        source.note(f"has {count} images, fewer than {source.n}: all are taken")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))[: source.n]
    chosen = replace(dataset, images=dataset.images[order.numpy()])
    return source.pixels(chosen, about)


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    """Write the files to the folder, and remove files of an earlier probe that this one has not made."""
    from restore.errors import OutputError, shown
    from restore.evaluation.probing.report import FILES
    from restore.files import write_atomically

    try:
        target.mkdir(exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{shown(target)}: cannot be made ({fault.strerror}); choose another -o") from fault
    for name in FILES:
        if name in files:
            write_atomically(target / name, files[name])
        else:
            (target / name).unlink(missing_ok=True)
