"""`restore evaluate`: how well a prior repairs images, how probable it finds them, and how good its features are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from restore.cli import options
from restore.cli.scoring.card import evaluate_card
from restore.cli.scoring.features import evaluate_features
from restore.cli.scoring.likelihood import Choices, Kind, evaluate_likelihood
from restore.cli.scoring.source import Source
from restore.cli.scoring.task import Trial, evaluate_task
from restore.console import tell
from restore.images import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from restore.evaluation.classification import Classification
    from restore.evaluation.evaluate import Report
    from restore.evaluation.likelihoods.result import Likelihood

EXAMPLE = "Example:  restore evaluate tap-mnist --data mnist --task flip:0.1 --n 1000 --json"


def evaluate(
    model: Annotated[
        str, typer.Argument(help="Name or folder of a prior; for --task also a pseudo-model: ope, nn, median.")
    ],
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
    likelihood: Annotated[
        Kind | None,
        typer.Option(
            help="Mean log-likelihood in nats per image: by annealed importance sampling (a minute), from TAP "
            "solutions, from each pixel given the others, or exact for at most 25 units in the smaller layer."
        ),
    ] = None,
    classify: Annotated[
        bool,
        typer.Option(
            "--classify",
            help="Fit a logistic regression to the hidden units of the training images, and count its errors on the "
            "test images; for data with labels.",
        ),
    ] = False,
    card: Annotated[
        bool,
        typer.Option(
            "--card",
            help="Write the scores of the prior to its card: the damage that all cards have, on 1000 test images.",
        ),
    ] = False,
    mask: Annotated[
        Literal["known", "unknown"] | None, typer.Option(help="Patches: whether the engine sees the mask [known].")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Use the first N images of the split [all].")] = None,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to evaluate on.")] = "test",
    threshold: Annotated[
        int | None, typer.Option(help="Grey level above which a pixel is ink [the prior's; 127 for pseudo-models].")
    ] = None,
    neighbours: Annotated[int, typer.Option(help="k of the pseudo-model nn.")] = 1,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="ais: linear:K for K temperatures, or a paper's: frank-wolfe, tap-machine, s-dcp [salakhutdinov]."
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="ais: independent runs [100].")] = None,
    starts: Annotated[int | None, typer.Option(help="tap: images its solutions start from [100].")] = None,
    pixels: Annotated[int | None, typer.Option(help="pseudo: pixels drawn from each image [all].")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage, or of the sampling.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    soft: Annotated[
        bool, typer.Option("--soft", help="Score the probabilities as grey values too: PSNR and SSIM.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes and no progress.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    max_memory: options.MaxMemory = None,
    max_pixels: options.MaxPixelsOfSets = DEFAULT_MAX_PIXELS,
    solver: options.SolverOption = None,
) -> None:
    """Judge a prior: give one of --task, --likelihood, --classify and --card."""
    from restore.errors import UsageError

    if n is not None and n < 1:
        raise UsageError(f"--n must be at least 1, not {n}")
    if (task is not None) + (likelihood is not None) + classify + card != 1:
        raise UsageError("give one of --task, --likelihood, --classify and --card")
    if data is None and not card:
        raise UsageError("--data is missing; give the images to evaluate on")
    if task is None and (mask is not None or soft or max_memory is not None or solver is not None):
        raise UsageError("--mask, --soft, --max-memory and --solver belong to --task; leave them out")
    if classify and split == "train":
        raise UsageError("--classify trains on the training images and counts errors on the others; leave --split out")
    if card and (json or split == "train" or threshold is not None):
        raise UsageError("--card is about test images as the prior knows them; leave --json, --split, --threshold out")
    choices = Choices(schedule, runs, starts, pixels)
    choices.check(likelihood)
    if card:
        evaluate_card(model, data, n, data_root, seed, device)
        return
    assert data is not None
    source = Source(data, split, n, threshold, data_root, quiet, max_pixels)
    report: Report | Likelihood | Classification
    if task is not None:
        report = evaluate_task(model, source, Trial(task, mask, neighbours, soft, seed), device, max_memory, solver)
    elif likelihood is not None:
        report = evaluate_likelihood(model, source, likelihood, choices, seed, device)
    else:
        report = evaluate_features(model, source, seed, device)
    tell(report.as_json() if json else report.as_text())
