"""Decide which images a command restores, and where the results go, before the first one is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from restore.cli.batch.clashes import STDIN, STDOUT, File, refuse_clashes
from restore.cli.batch.manifest import Manifest
from restore.cli.options import Settings
from restore.errors import UsageError, shown
from restore.images import format_of, page_name
from restore.images.outputs import Standing, expand, means_folder, paired, plan

STDIO = "-"

# Options that say where results go or how they are computed, not what they are. The prior is known by its weights.
NOT_THE_RESULT = {
    *("model", "output", "overwrite", "skip_existing", "force", "json", "quiet"),
    *("max_pixels", "engine", "device", "max_memory", "workers"),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One image to restore, which may be a page of a file.

    Attributes:
        source: its file.
        target, uncertainty: where the results go, with those of the other pages.
        mask: the file of its mask; None if it has none.
        page, mask_page: which page or frame of the file, and of that of the mask, from 0; None for the only one.
        pages: how many pages of the file are restored.
    """

    source: str
    target: str
    uncertainty: Path | None = None
    mask: Path | None = None
    page: int | None = None
    mask_page: int | None = None
    pages: int = 1

    @property
    def name(self) -> str:
        """What messages call the image."""
        name = "stdin" if self.source == STDIO else self.source
        return name if self.page is None or self.pages == 1 else page_name(name, self.page, self.pages)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that the results are made from."""
        return (Path(self.source),) if self.mask is None else (Path(self.source), self.mask)


@dataclass(frozen=True)
class Work:
    """What a command has to do.

    Attributes:
        jobs: the images to restore.
        named: how many images the user named, including those whose results exist already.
        manifest: the manifest of the folder the results go to; None if they go to single files.
    """

    jobs: list[Job]
    named: int
    manifest: Manifest | None = None


def work_of(
    inputs: Sequence[str], settings: Settings, masks: str | None, channel: Mapping[str, Any] | None = None
) -> Work:
    """Make one job for each image named, or in a folder named, whose results do not exist yet.

    Args:
        inputs: files and folders, or STDIO alone.
        settings: where the results go.
        masks: a mask, or a folder of masks; None for none.
        channel: the damage that the user gave, on which the results depend too.

    Raises:
        UsageError: if a result would overwrite another one, an input or a mask, or cannot go where it should; or if
            existing results were made with other settings.
        OutputError: if a result exists already that no earlier run has made.
    """
    if STDIO in inputs or settings.output == STDIO:
        return Work(_stdio_jobs(inputs, settings, masks), 1)
    sources = expand(inputs)
    _refuse_clashes(_all_jobs(sources, settings, masks), settings)
    manifest = None
    if settings.output is not None and means_folder(settings.output):
        manifest = _manifest(Path(settings.output), settings, channel or {})

    def standing(source: Path, target: Path) -> Standing:
        if manifest is None:
            return Standing.FOREIGN
        return manifest.standing(Job(str(source), str(target), None, _mask_of(source, masks)).sources, target)

    pairs = plan(
        sources,
        settings.output,
        overwrite=settings.overwrite,
        skip_existing=settings.skip_existing,
        standing=standing,
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
                standing=standing,
            )
        )
    jobs = [Job(str(source), str(target), maps.get(source), _mask_of(source, masks)) for source, target in pairs]
    return Work(jobs, len(sources), manifest)


def _all_jobs(sources: Sequence[Path], settings: Settings, masks: str | None) -> list[Job]:
    """The jobs of all images, including those whose results exist."""
    targets = paired(sources, settings.output)
    maps = {} if settings.uncertainty is None else dict(paired(sources, settings.uncertainty, "uncertainty"))
    return [Job(str(source), str(target), maps.get(source), _mask_of(source, masks)) for source, target in targets]


def _refuse_clashes(jobs: Sequence[Job], settings: Settings) -> None:
    """Refuse to write a file that any of the jobs also reads or writes."""
    reads: list[File] = [file for job in jobs for file in job.sources]
    writes: list[File] = [Path(job.target) for job in jobs if job.target != STDIO]
    writes += [job.uncertainty for job in jobs if job.uncertainty is not None]
    if any(job.source == STDIO for job in jobs):
        reads.append(STDIN)
    if settings.json or any(job.target == STDIO for job in jobs):
        writes.append(STDOUT)
    refuse_clashes(reads, writes)


def _manifest(folder: Path, settings: Settings, channel: Mapping[str, Any]) -> Manifest:
    told = {one.name: getattr(settings, one.name) for one in fields(Settings) if one.name not in NOT_THE_RESULT}
    if settings.uncertainty is not None:
        told["uncertainty"] = os.path.relpath(settings.uncertainty, folder)
    model = None if settings.model == "auto" else settings.model
    return Manifest.of(folder, {**channel, **told}, model, settings.overwrite)


def _stdio_jobs(inputs: Sequence[str], settings: Settings, masks: str | None) -> list[Job]:
    """The one job when stdin or stdout is used; none if its result exists already."""
    if len(inputs) != 1:
        raise UsageError("- stands for the only image; name files instead to restore several")
    target = STDIO if settings.output in (None, STDIO) else str(settings.output)
    if target == STDIO:
        if settings.json:
            raise UsageError("--json and the image cannot both go to stdout; give -o FILE")
        if sys.stdout.isatty():
            raise UsageError("a PNG does not belong on a terminal; give -o FILE or redirect stdout")
    elif means_folder(target):
        raise UsageError(f"{shown(target)}: is a folder, but an image from stdin has no name; give -o FILE")
    maps = Path(settings.uncertainty) if settings.uncertainty is not None else None
    job = Job(inputs[0], target, maps, _mask_of(Path(inputs[0]), masks))
    _refuse_clashes([job], settings)
    source = [Path(inputs[0])]
    if target != STDIO and not plan(source, target, overwrite=settings.overwrite, skip_existing=settings.skip_existing):
        return []
    if maps is not None:
        plan(source, settings.uncertainty, overwrite=settings.overwrite, skip_existing=False)
    return [job]


def _mask_of(source: Path, masks: str | None) -> Path | None:
    """The mask of an image: the file given, or the one of the same name in the folder given."""
    if masks is None:
        return None
    folder = Path(masks)
    return folder / source.name if folder.is_dir() else folder
