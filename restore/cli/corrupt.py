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

    import numpy as np

    from restore.buckets import Place
    from restore.channels import parse_task
    from restore.cli.report import UNTOUCHED, Failures, one_image, print_json
    from restore.console import say
    from restore.errors import RestoreError, UsageError, option, shown, some
    from restore.files import write_atomically
    from restore.images import Picture, bound, check_format, encode, format_of, read_picture
    from restore.images.outputs import expand, paired, plan, refuse_clashes

    damage = parse_task(task)
    if mask_output is not None and damage.mask is None:
        raise UsageError(f"hides no pixels, so there is no mask to write; leave {option('mask_output')} out", task)
    sources = expand(images, suffix="corrupted")
    # Masks have the names of their images, so that `complete --mask FOLDER` finds them.
    both = [output] if mask_output is None else [output, mask_output]
    refuse_clashes(sources, [target for where in both for _, target in paired(sources, where, "corrupted")])
    pairs = plan(sources, output, suffix="corrupted", overwrite=overwrite, skip_existing=skip_existing)
    left = [source for source, _ in pairs] if mask_output is not None else []
    masks = dict(plan(left, mask_output, suffix="corrupted", overwrite=overwrite, skip_existing=skip_existing))
    if len(masks) < len(left):
        say(f"{UNTOUCHED}: the masks of {some(str(source) for source in left if source not in masks)}")
    seeds = dict(zip(sources, np.random.SeedSequence(seed).spawn(len(sources)), strict=True))
    failures = Failures(json, many=len(pairs) > 1, debug=debug)

    def write(picture: Picture, values: np.ndarray, target: Place) -> None:
        content = encode(picture, values, format=format_of(target), name=str(target))
        write_atomically(target, bound([content], format_of(target)))

    for source, target in pairs:
        try:
            with one_image(str(source)):
                picture = read_picture(source, name=str(source), frame=frame, max_pixels=max_pixels)
                for note in picture.notes:
                    say(f"{shown(source)}: {note}")
                check_format(picture, format_of(target), name=str(target))
                observed, hidden = damage.damage_picture(picture.pixels, np.random.default_rng(seeds[source]))
                if source in masks and hidden is not None:
                    write(Picture(np.zeros(hidden.shape, np.uint8)), hidden.astype(float), masks[source])
                write(picture, observed, target)
        except RestoreError as fault:
            failures.add(source, fault)
            continue
        if json:
            print_json({"input": shown(source), "output": shown(target), "task": str(damage), "seed": seed})
    done = len(pairs) - failures.count
    if done and not quiet:
        where = f": {shown(pairs[0][1])}" if len(pairs) == 1 else ""
        who = shown(pairs[0][0]) if len(pairs) == 1 else f"{done} of {len(pairs)} images"
        say(f"{who}: damaged by {damage} with seed {seed}{where}")
    failures.verdict(len(pairs))
