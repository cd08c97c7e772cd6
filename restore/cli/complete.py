"""`restore complete`: fill missing pixels."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import batch
from restore.images import DEFAULT_MAX_PIXELS

EXAMPLE = "Example:  restore complete torn.png --mask hole.png --model tap-mnist"


def complete(
    images: batch.Images,
    mask: Annotated[
        str,
        typer.Option(help="Mask image, white = to fill; or a folder with a mask of the same name for every image."),
    ],
    p: Annotated[
        float | None,
        typer.Option(help="Probability that a visible pixel is inverted; without it visible pixels stay as they are."),
    ] = None,
    sigma: batch.Sigma = None,
    model: batch.Model = "auto",
    output: batch.Output = None,
    overwrite: batch.Overwrite = False,
    skip_existing: batch.SkipExisting = False,
    fit: batch.FitOption = "error",
    invert: batch.Invert = False,
    soft: batch.Soft = False,
    uncertainty: batch.Uncertainty = None,
    frame: batch.Frame = None,
    max_pixels: batch.MaxPixels = DEFAULT_MAX_PIXELS,
    json: batch.Json = False,
    quiet: batch.Quiet = False,
    engine: batch.Engine = "auto",
    device: batch.Device = "auto",
    max_memory: batch.MaxMemory = None,
    solver: batch.SolverOption = None,
) -> None:
    """Fill the pixels under a mask."""
    batch.check_noise(p, sigma)
    settings = batch.Settings(
        model,
        output,
        overwrite,
        skip_existing,
        fit,
        invert,
        soft,
        uncertainty,
        frame,
        max_pixels,
        json,
        quiet,
        engine,
        device,
        max_memory,
        solver,
    )
    batch.run(images, settings, p, sigma, mask)
