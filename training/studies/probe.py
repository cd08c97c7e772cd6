"""Look at what a prior has learnt: its distinct TAP solutions, their free energies, and its receptive fields.

    python training/studies/probe.py tap-mnist-100 --data mnist -o tap-mnist-100-probe

writes pictures and probe.json. Of a run of `restore train --every N` it follows the priors that were kept.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from harness import run
from kept import kept_epochs
from opened import free_machine
from probing import report
from probing.findings import Findings
from probing.solutions import tap_solutions
from torch import Tensor

from restore import zoo
from restore.console import progress, say, tell
from restore.data import as_pixels, load
from restore.errors import InputError, ModelError, OutputError, shown
from restore.files import write_atomically
from restore.inference.torch_engine import Engine
from restore.zoo.description import Description


def probe(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior, or of a run of `restore train --every N`.")],
    data: Annotated[str, typer.Option(help="Data set by name, a folder or archive of images, an idx file or .npy.")],
    n: Annotated[int, typer.Option("--n", min=2, help="Images to start from, drawn from the data.")] = 1000,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to start from.")] = "train",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the draw.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the pictures and probe.json [MODEL-probe].")
    ] = None,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Show what a prior has learnt, by the solutions that images lead to."""
    priors = priors_of(model)
    target = output or Path(f"{Path(model).resolve().name}-probe")
    if target.exists():
        raise OutputError(f"{shown(target)}: exists already; give another -o")
    for _, folder in priors:
        if zoo.describe(folder).task:
            raise ModelError(f"{shown(folder.name)}: is conditional, with no TAP solutions; choose one that is not")
    engine = Engine.load(str(folder), device)
    images = drawn(data, split, n, data_root, engine.header, seed).to(engine.device)
    found: list[Findings] = []
    with progress(f"{model}: starts", len(priors) * len(images)) as meter:
        for epoch, folder in priors:
            started, before = time.perf_counter(), len(found) * len(images)
            engine = Engine.load(str(folder), device)
            machine = free_machine(engine, "TAP solutions")
            solutions = tap_solutions(machine, images, meter=lambda done, before=before: meter(before + done))
            seconds = time.perf_counter() - started
            found.append(Findings.of(engine.header.name, epoch, solutions, seconds))
    made = report.report(machine, solutions, images, engine.header.image_shape)
    settings = {"data": data, "split": split, "n": len(images), "seed": seed}
    content = report.as_json(found, settings | report.SOLVER, made.facts)
    target.mkdir()
    for name, file in (made.pictures | report.course(found) | {report.JSON: content.encode()}).items():
        write_atomically(target / name, file)
    for sentence in (*made.notes, *found[-1].warnings):
        say(f"{model}: {sentence}")
    tell("\n".join([*(entry.as_text() for entry in found), f"written to {shown(target)}"]))


def priors_of(model: str) -> list[tuple[int | None, Path]]:
    """The folder of a prior, without an epoch; or those of the priors kept during a run, with their epochs."""
    # A run holds the best of its priors as well.
    kept = kept_epochs(Path(model)) if Path(model).is_dir() else {}
    return [*kept.items()] if kept else [(None, zoo.find(model))]


def drawn(
    data: str, split: Literal["train", "test"], n: int, root: Path | None, header: Description, seed: int
) -> Tensor:
    """At most `n` random images of the data, (N, D), as a prior knows them.

    Raises:
        InputError: if there is only one.
        ModelError: if they are not of the prior's size.
    """
    dataset = load(data, split=split, root=root)
    if dataset.images.shape[1:] != header.image_shape:
        raise ModelError(f"{data}: images of shape {dataset.images.shape[1:]} do not fit {header.name}")
    if len(dataset.images) < 2:
        raise InputError(f"{data}: one image; a probe compares where several images lead to, so give more")
    order = torch.randperm(len(dataset.images), generator=torch.Generator().manual_seed(seed))[:n]
    chosen = dataset.images[order.numpy()]
    return torch.from_numpy(as_pixels(chosen, "grey" if header.grey else "threshold", header.threshold, 0))


if __name__ == "__main__":
    run(probe)
