"""`restore denoise`: undo random bit flips, or Gaussian noise."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import options as given

EXAMPLE = "Example:  restore denoise noisy.png --model tap-mnist --p 0.1"


@given.restoring
def denoise(
    images: given.Images,
    p: Annotated[
        str | None,
        typer.Option(
            metavar="FLOAT|WHITE,BLACK|auto|scan",
            help="Probability that a pixel is inverted (grey images: black or white), or that a white and that a black "
            "one is; scan: as its grey level says; not for crbm models. [found from the image]",
        ),
    ] = None,
    sigma: given.Sigma = None,
    *,
    options: given.Options,
    results: given.Results,
) -> None:
    """Remove flipped pixels or Gaussian noise from images, or the damage that a crbm model was trained on."""
    from restore.cli import files

    files.run(images, given.damage_of(p, sigma), options, results)
