"""`restore complete`: fill missing pixels."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import batch, options

EXAMPLE = "Example:  restore complete torn.png --mask hole.png --model tap-mnist"


@options.with_settings
def complete(
    images: options.Images,
    mask: Annotated[
        str,
        typer.Option(help="Mask image, white = to fill; or a folder with a mask of the same name for every image."),
    ],
    p: Annotated[
        float | None,
        typer.Option(help="Probability that a visible pixel is inverted; without it visible pixels stay as they are."),
    ] = None,
    sigma: options.Sigma = None,
    *,
    settings: options.Settings,
) -> None:
    """Fill the pixels under a mask."""
    options.check_noise(p, sigma)
    batch.run(images, settings, p, sigma, mask)
