"""`restore corrupt`: damage images on purpose, to try a prior where the truth is known."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.channels.task import TASK_FORMS
from restore.cli import options as given

# Says what damage may be drawn.
TASK = typer.Option(help=f"{TASK_FORMS}.", autocompletion=given.tasks)

EXAMPLE = "Example:  restore corrupt digit.png --task flip:0.1 --seed 1 -o noisy.png"


def corrupt(
    images: Annotated[list[str], typer.Argument(help="Images or folders of images.", show_default=False)],
    task: Annotated[str, TASK],
    seed: given.Seed = 0,
    mask_output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write which pixels were painted over: white = hidden.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="File, or folder (ending with /) [NAME.corrupted.png].")
    ] = None,
    overwrite: given.Overwrite = False,
    skip_existing: given.SkipExisting = False,
    frame: given.Frame = None,
    max_pixels: given.MaxPixels = given.DEFAULT_MAX_PIXELS,
    json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Damage images: flip pixels, add noise or salt and pepper, paint over a patch at a random place.

    The damage of an image depends only on the seed and on its place among the inputs.
    """
    from restore.cli.damaging import run

    results = given.Results(output, overwrite, skip_existing, frame=frame, json=json, quiet=quiet, debug=debug)
    run(images, task, seed, results, max_pixels, mask_output)
