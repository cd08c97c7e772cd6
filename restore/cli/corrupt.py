"""`restore corrupt`: damage images on purpose, to try a prior where the truth is known."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import options
from restore.cli.batch import telling
from restore.images import DEFAULT_MAX_PIXELS

EXAMPLE = "Example:  restore corrupt digit.png --task flip:0.1 --seed 1 -o noisy.png"


def corrupt(
    images: Annotated[list[str], typer.Argument(help="Images or folders of images.", show_default=False)],
    task: Annotated[
        str,
        typer.Option(
            help="flip:P, flip:WHITE,BLACK (rates of each), noise:SIGMA, salt:P, patch:SIZE[:FILL], "
            "holes:SIZE:SHARE, or several: noise:0.1+patch:8."
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    mask_output: Annotated[
        str | None, typer.Option("--mask-output", metavar="FILE", help="Write the mask of the patch: white = hidden.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="File, or folder (ending with /) [NAME.corrupted.png].")
    ] = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
    frame: options.Frame = None,
    max_pixels: options.MaxPixels = DEFAULT_MAX_PIXELS,
    json: options.Json = False,
) -> None:
    """Damage images: flip pixels, add noise or salt and pepper, paint over a patch at a random place.

    The damage of an image follows from the seed and its place among the inputs, whatever becomes of the others.
    """
    from pathlib import Path

    import numpy as np

    from restore.channels import parse_task
    from restore.cli.batch.clashes import refuse_clashes
    from restore.errors import UsageError, shown
    from restore.files import write_atomically
    from restore.images import Picture, bound, check_format, encode, format_of, read_picture
    from restore.images.outputs import expand, paired, plan

    damage = parse_task(task)
    if mask_output is not None and damage.mask is None:
        raise UsageError(f"{task}: hides no pixels, so there is no mask to write; leave --mask-output out")
    sources = expand(images, suffix="corrupted")
    to_write = [paired(sources, output, "corrupted")]
    if mask_output is not None:
        to_write.append(paired(sources, mask_output, "corrupted"))
    refuse_clashes(sources, [target for part in to_write for _, target in part])
    pairs = plan(sources, output, suffix="corrupted", overwrite=overwrite, skip_existing=skip_existing)
    masks: dict[Path, Path] = {}
    if mask_output is not None:
        # Masks have the names of their images, so that `complete --mask FOLDER` finds them.
        left = [source for source, _ in pairs]
        masks = dict(plan(left, mask_output, suffix="corrupted", overwrite=overwrite, skip_existing=False))
    seeds = dict(zip(sources, np.random.SeedSequence(seed).spawn(len(sources)), strict=True))
    failures = telling.Failures(json, many=len(pairs) > 1)

    def file_of(picture: Picture, values: np.ndarray, target: Path) -> bytes:
        return bound([encode(picture, values, format=format_of(target), name=str(target))], format_of(target))

    def damaged(source: Path, target: Path) -> None:
        picture = read_picture(source, name=str(source), frame=frame, max_pixels=max_pixels)
        check_format(picture, format_of(target), name=str(target))
        observed, hidden = damage.damage_picture(picture.pixels, np.random.default_rng(seeds[source]))
        content = file_of(picture, observed, target)
        if source in masks and hidden is not None:
            black = Picture(np.zeros(hidden.shape, np.uint8))
            write_atomically(masks[source], file_of(black, hidden.astype(float), masks[source]))
        write_atomically(target, content)
        if json:
            telling.print_json({"input": shown(source), "output": shown(target), "task": str(damage), "seed": seed})

    for source, target in pairs:
        with failures.of(source):
            damaged(source, target)
    failures.verdict(len(pairs))
