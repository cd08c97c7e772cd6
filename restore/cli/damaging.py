"""Damage images on purpose, for corrupt: each by its own seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from restore.buckets import Place
from restore.channels import parse_task
from restore.cli.options import Results
from restore.cli.report import UNTOUCHED, Failures, one_image, print_json
from restore.console import say
from restore.errors import RestoreError, UsageError, option, shown, some
from restore.files import write_atomically
from restore.images import Picture, bound, check_format, encode, format_of, read_picture
from restore.images.outputs import expand, make_ready, paired, refuse_clashes, to_write

SUFFIX = "corrupted"


def run(images: Sequence[str], task: str, seed: int, results: Results, max_pixels: int, masks: str | None) -> None:
    """Damage images, and write which pixels were painted over to `masks`; see the command for the options."""
    damage = parse_task(task)
    if masks is not None and damage.mask is None:
        raise UsageError(f"hides no pixels, so there is no mask to write; leave {option('mask_output')} out", task)
    sources = expand(images, suffix=SUFFIX)
    seeds = dict(zip(sources, np.random.SeedSequence(seed).spawn(len(sources)), strict=True))
    pairs, mask_of = _planned(sources, results, masks)
    make_ready([target for _, target in pairs] + [mask_of[source] for source, _ in pairs if source in mask_of])
    failures = Failures(results.json, many=len(pairs) > 1, debug=results.debug)
    for source, target in pairs:
        try:
            with one_image(str(source)):
                picture = read_picture(source, name=str(source), frame=results.frame, max_pixels=max_pixels)
                for note in picture.notes:
                    say(f"{shown(source)}: {note}")
                check_format(picture, format_of(target), name=str(target))
                observed, hidden = damage.damage_picture(picture.pixels, np.random.default_rng(seeds[source]))
                if source in mask_of and hidden is not None:
                    _write(Picture(np.zeros(hidden.shape, np.uint8)), hidden.astype(float), mask_of[source])
                _write(picture, observed, target)
        except RestoreError as fault:
            failures.add(source, fault)
            continue
        if results.json:
            print_json({"input": shown(source), "output": shown(target), "task": str(damage), "seed": seed})
    if not results.quiet and len(pairs) > failures.count:
        say(_summary(pairs, failures.count, f"damaged by {damage} with seed {seed}"))
    failures.verdict(len(pairs))


def _planned(
    sources: Sequence[Place], results: Results, masks: str | None
) -> tuple[list[tuple[Place, Place]], Mapping[Place, Place]]:
    """Images with their results, and with masks of the same names, so that `complete --mask FOLDER` finds them."""
    pairs = paired(sources, results.output, SUFFIX)
    mask_of = {} if masks is None else dict(paired(sources, masks, SUFFIX))
    refuse_clashes(sources, [*(target for _, target in pairs), *mask_of.values()])
    manner = {"overwrite": results.overwrite, "skip_existing": results.skip_existing}
    left = to_write([target for _, target in pairs], results.output, **manner)
    pairs = [(source, target) for source, target in pairs if target in left]
    if masks is None:
        return pairs, {}
    left = to_write([mask_of[source] for source, _ in pairs], masks, **manner)
    kept = [str(source) for source, _ in pairs if mask_of[source] not in left]
    if kept:
        say(f"{UNTOUCHED}: the masks of {some(kept)}")
    return pairs, {source: mask for source, mask in mask_of.items() if mask in left}


def _write(picture: Picture, values: np.ndarray, target: Place) -> None:
    content = encode(picture, values, format=format_of(target), name=str(target))
    write_atomically(target, bound([content], format_of(target)))


def _summary(pairs: Sequence[tuple[Place, Place]], failed: int, damaged: str) -> str:
    if len(pairs) == 1:
        source, target = pairs[0]
        return f"{shown(source)}: {damaged}: {shown(target)}"
    return f"{len(pairs) - failed} of {len(pairs)} images: {damaged}"
