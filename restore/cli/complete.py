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
    p: given.Flips = None,
    sigma: given.Sigma = None,
    *,
    options: given.Options,
    results: given.Results,
) -> None:
    """Fill the pixels under a mask."""
    from restore.cli import batch, watch
    from restore.inference.damage import Damage

    work = watch.run if results.watch else batch.run
    work(images, Damage.of(p, sigma), options, results, mask)
