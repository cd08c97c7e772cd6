"""`restore evaluate`: how well a prior, or a simple engine, repairs images whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from restore.cli import batch

EXAMPLE = "Example:  restore evaluate tap-mnist --data mnist --task flip:0.1 --n 1000 --json"


def evaluate(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior, or a pseudo-model: ope, nn, median.")],
    data: Annotated[str, typer.Option(help="Data set by name, or a folder of images, an idx file or .npy.")],
    task: Annotated[str, typer.Option(help="flip:P, or patch:SIZE[:FILL] at a random place.")],
    mask: Annotated[
        Literal["known", "unknown"] | None, typer.Option(help="Patches: whether the engine sees the mask [known].")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Use the first N images of the split [all].")] = None,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to restore.")] = "test",
    threshold: Annotated[
        int | None, typer.Option(help="Grey level above which a pixel is ink [the prior's; 127 for pseudo-models].")
    ] = None,
    neighbours: Annotated[int, typer.Option(help="k of the pseudo-model nn.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    soft: Annotated[
        bool, typer.Option("--soft", help="Score the probabilities as grey values too: PSNR and SSIM.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_memory: batch.MaxMemory = None,
) -> None:
    """Damage images, restore them, and compare with the truth."""
    import sys

    from restore.errors import ModelError, UsageError
    from restore.evaluation.baselines import BASELINES, baseline
    from restore.tasks import parse_task

    if n is not None and n < 1:
        raise UsageError(f"--n must be at least 1, not {n}")
    damage = parse_task(task, mask)

    import torch

    from restore.data import binarise, load, overlap
    from restore.engine import Engine
    from restore.evaluation.evaluate import evaluate as score
    from restore.evaluation.evaluate import restorer_of, task_of, unmasked

    engine = None if model in BASELINES else Engine.load(model, device, batch.memory_size(max_memory))
    if threshold is None:
        threshold = 127 if engine is None else engine.trained.description.threshold
    dataset = load(data, split=split, root=data_root)
    if not quiet:
        for note in dataset.notes:
            print(f"{data}: {note}", file=sys.stderr)
    shape = (dataset.images.shape[1], dataset.images.shape[2])
    truth = torch.from_numpy(binarise(dataset.images[:n], threshold))
    generator = torch.Generator().manual_seed(seed)
    if engine is None:
        known = load(data, split="train", root=data_root)
        shared = overlap(known, dataset)
        if shared and not quiet:
            print(f"{data}: {model} was fitted to {shared} of the images it restores", file=sys.stderr)
        training = torch.from_numpy(binarise(known.images, threshold))
        simple = baseline(model, training, shape, neighbours)
        report = score(simple.restore, truth, damage, shape, generator, grey=soft)
    else:
        about = engine.trained.description
        if about.image_shape != shape:
            raise ModelError(
                f"{data}: images of shape {shape} do not fit {about.name}, which knows {about.image_shape}"
            )
        if about.conditional:
            if mask == "known":
                raise UsageError(f"{about.name} sees the damaged image alone; leave --mask known away")
            if str(damage) != str(task_of(about)) and not quiet:
                print(f"{model}: was trained to undo {about.task}, not {damage}", file=sys.stderr)
        seen = unmasked(damage) if about.conditional else damage
        report = score(restorer_of(engine), truth, seen, shape, generator, grey=soft)
    print(report.as_json() if json else report.as_text())
