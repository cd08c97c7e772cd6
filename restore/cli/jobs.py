"""Which images a command restores, and where the results go: decided before the first one is read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from restore.cli.options import Settings
from restore.errors import UsageError, shown
from restore.images import format_of
from restore.outputs import expand, plan

STDIO = "-"


@dataclass(frozen=True)
class Job:
    """One image to restore: where it comes from, where the results go, and its mask's file if it has one."""

    source: str
    target: str
    uncertainty: Path | None = None
    mask: Path | None = None


def jobs_of(inputs: Sequence[str], settings: Settings, masks: str | None) -> list[Job]:
    """One job for each image named, and for each in a folder named.

    Args:
        inputs: files and folders, or STDIO alone.
        settings: where the results go.
        masks: a mask, or a folder of masks; None for none.

    Raises:
        UsageError: if results would overwrite each other, an input, or a mask, or do not belong where they go.
        OutputError: if a result exists already.
    """
    if STDIO in inputs or settings.output == STDIO:
        return [_stdio_job(inputs, settings, masks)]
    sources = expand(inputs)
    protected = [Path(masks)] if masks is not None else []
    pairs = plan(
        sources,
        settings.output,
        overwrite=settings.overwrite,
        skip_existing=settings.skip_existing,
        protected=protected,
    )
    for _, target in pairs:
        format_of(target)
    maps: dict[Path, Path] = {}
    if settings.uncertainty is not None:
        left = [source for source, _ in pairs]
        maps = dict(
            plan(
                left,
                settings.uncertainty,
                suffix="uncertainty",
                overwrite=settings.overwrite,
                skip_existing=False,
                protected=[*protected, *(target for _, target in pairs)],
            )
        )
        clash = {target for _, target in pairs} & set(maps.values())
        if clash:
            raise UsageError(
                f"{shown(min(clash))}: is the output and the uncertainty map; choose another --uncertainty"
            )
    return [Job(str(source), str(target), maps.get(source), _mask_of(source, masks)) for source, target in pairs]


def _stdio_job(inputs: Sequence[str], settings: Settings, masks: str | None) -> Job:
    if len(inputs) != 1:
        raise UsageError("- stands for the only image; name files instead to restore several")
    target = STDIO if settings.output in (None, STDIO) else str(settings.output)
    if target == STDIO:
        if settings.json:
            raise UsageError("--json and the image cannot both go to stdout; give -o FILE")
        if sys.stdout.isatty():
            raise UsageError("a PNG does not belong on a terminal; give -o FILE or redirect stdout")
    else:
        plan([Path(inputs[0])], target, overwrite=settings.overwrite, skip_existing=settings.skip_existing)
    maps = Path(settings.uncertainty) if settings.uncertainty is not None else None
    if maps is not None:
        plan([Path(inputs[0])], settings.uncertainty, overwrite=settings.overwrite, skip_existing=False)
    return Job(inputs[0], target, maps, _mask_of(Path(inputs[0]), masks))


def _mask_of(source: Path, masks: str | None) -> Path | None:
    """The mask of an image: the file given, or the one of the same name in the folder given."""
    if masks is None:
        return None
    folder = Path(masks)
    return folder / source.name if folder.is_dir() else folder
