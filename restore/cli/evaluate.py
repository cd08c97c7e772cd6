"""`restore evaluate`: how well a prior repairs images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from restore.cli import options
from restore.cli.scoring import Opening, Source, Trial, evaluate_card, evaluate_task
from restore.console import tell
from restore.images import DEFAULT_MAX_PIXELS

EXAMPLE = "Example:  restore evaluate tap-mnist --data mnist --task flip:0.1 --n 1000 --json"


def evaluate(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior, or a baseline: ope, nn, median.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="Data set by name, a folder or archive of images, an idx file or .npy; --card takes the prior's own."
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Damage and restore: flip:P, flip:WHITE,BLACK (rates of each), noise:SIGMA, salt:P, "
            "patch:SIZE[:FILL], holes:SIZE:SHARE, or several: noise:0.1+patch:8."
        ),
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="Write scores for standard damage to the prior's card.")] = False,
    mask: Annotated[
        Literal["known", "unknown"] | None, typer.Option(help="Patches: whether the prior is told the mask [known].")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Use the first N images of the split [all].")] = None,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to evaluate on.")] = "test",
    threshold: Annotated[
        int | None, typer.Option(help="Grey level above which a pixel is ink [the prior's; 127 for baselines].")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    soft: Annotated[bool, typer.Option("--soft", help="Score probabilities as grey values: PSNR and SSIM.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes and no progress.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_memory: options.MaxMemory = None,
    max_pixels: options.MaxPixelsOfSets = DEFAULT_MAX_PIXELS,
    solver: options.SolverOption = None,
) -> None:
    """Score a prior on damaged images (--task), or write its card (--card)."""
    from restore.errors import UsageError

    if (task is None) != card:
        raise UsageError("give one of --task and --card")
    if card and (mask or soft or json or threshold is not None or max_memory or solver or split == "train"):
        raise UsageError("--card scores test images in its own way; give --data, --n, --seed or --device alone with it")
    source = Source(data or "", split, n, threshold, data_root, quiet, max_pixels)
    if card:
        tell(evaluate_card(model, source, seed, device))
        return
    if data is None:
        raise UsageError("--data is missing; give the images to evaluate on")
    assert task is not None
    opening = Opening(device, options.memory_size(max_memory), solver)
    report = evaluate_task(model, source, Trial(task, mask, soft, seed), opening)
    tell(report.as_json() if json else report.as_text())
