"""`restore denoise`: undo random bit flips."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import batch
from restore.images import DEFAULT_MAX_PIXELS

EXAMPLE = "Example:  restore denoise noisy.png --model tap-mnist --p 0.1"


def denoise(
    images: batch.Images,
    p: Annotated[float | None, typer.Option(help="Probability that a pixel is inverted, in [0, 1].")] = None,
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
    device: batch.Device = "auto",
) -> None:
    """Remove flipped pixels from images."""
    from restore.errors import UsageError

    if p is None:
        raise UsageError("--p is missing; give the probability that a pixel is inverted, such as --p 0.1")
    batch.check_probability(p)
    settings = batch.Settings(
        model, output, overwrite, skip_existing, fit, invert, soft, uncertainty, frame, max_pixels, json, quiet, device
    )
    batch.run(images, settings, p)
