"""`restore denoise`: undo random bit flips, or Gaussian noise."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import batch
from restore.images import DEFAULT_MAX_PIXELS

EXAMPLE = "Example:  restore denoise noisy.png --model tap-mnist --p 0.1"


def denoise(
    images: batch.Images,
    p: Annotated[
        float | None,
        typer.Option(help="Probability that a pixel is inverted (grey images: black or white); not for crbm models."),
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
    """Remove flipped pixels or Gaussian noise from images, or with a crbm model the damage that it was trained on."""
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
    batch.run(images, settings, p, sigma)
