"""`restore complete`: fill missing pixels."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import options as given

EXAMPLE = "Example:  restore complete torn.png --mask hole.png --model tap-mnist"


@given.restoring
def complete(
    images: given.Images,
    mask: Annotated[
        str,
        typer.Option(help="Mask image, white = to fill; or a folder with a mask of the same name for every image."),
    ],
    p: Annotated[
        str | None,
        typer.Option(
            metavar="FLOAT|WHITE,BLACK|auto|scan",
            help="Probability that a visible pixel is inverted, or that a white and that a black one is, auto or scan; "
            "without it visible pixels stay as they are.",
        ),
    ] = None,
    sigma: given.Sigma = None,
    *,
    options: given.Options,
    results: given.Results,
) -> None:
    """Fill the pixels under a mask."""
    from restore.cli import files

    files.run(images, given.damage_of(p, sigma), options, results, mask)
