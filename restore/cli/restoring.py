"""`restore denoise`: undo random bit flips, or Gaussian noise. `restore complete`: fill missing pixels."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from restore.cli import options as given

EXAMPLE = "Example:  restore denoise page.png   (or: restore complete torn.png --mask hole.png)"


@given.restoring
def denoise(images: given.Images, *, damage: Any, options: given.Options, results: given.Results) -> None:
    """Remove noise from images, or the damage that a prior whose name begins with crbm was trained on.

    \b
    restore denoise page.png             prior and noise level are found
    restore denoise scans/ -o clean/     a folder of images; or a PDF, a TIFF
    restore denoise old.png --soft       a grey page, on white paper
    """
    from restore.cli.batch.run import run

    run(images, damage, options, results)


@given.restoring
def complete(
    images: given.Images,
    mask: Annotated[
        str, typer.Option(help="Mask image, white = to fill; or a folder with a mask of the same name for every image.")
    ],
    *,
    damage: Any,
    options: given.Options,
    results: given.Results,
) -> None:
    """Fill the pixels under a mask."""
    from restore.cli.batch.run import run

    run(images, damage, options, results, mask)
