"""Take files of several pages apart into jobs of one page each, and put their results together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from restore.cli.batch.items import Failed, Made
from restore.cli.batch.jobs import STDIO, Job
from restore.cli.batch.manifest import Entry
from restore.cli.options import Settings
from restore.errors import InputError, RestoreError, shown
from restore.images import bound, check_holds, format_of, page_count


def sheets(jobs: Iterable[Job], settings: Settings) -> Iterator[Job | Failed]:
    """The jobs of all pages, in order; files are looked into only when their turn comes."""
    for job in jobs:
        try:
            yield from _sheets_of(job, settings)
        except RestoreError as fault:
            yield Failed(job, fault)


def _sheets_of(job: Job, settings: Settings) -> list[Job]:
    if settings.frame is not None or job.source == STDIO:
        return [replace(job, page=settings.frame)]
    most = settings.max_pixels
    count = page_count(job.source, name=job.source, max_pixels=most)
    for target in (job.target, *([] if job.uncertainty is None else [str(job.uncertainty)])):
        check_holds(count, _format(target), source=job.source, target="stdout" if target == STDIO else target)
    masks = 1 if job.mask is None else page_count(job.mask, name=str(job.mask), max_pixels=most)
    if masks not in (1, count):
        raise InputError(
            f"{shown(str(job.mask))}: holds {masks} pages, and {shown(job.source)} {count}; give a mask of one page "
            "for all, or one for each"
        )
    if count == 1:
        return [job]
    return [replace(job, page=page, mask_page=page if masks > 1 else None, pages=count) for page in range(count)]


def _format(target: str) -> str:
    return "PNG" if target == STDIO else format_of(target)


def whole(portions: Iterable[Sequence[Made | Failed]]) -> Iterator[list[Made | Failed]]:
    """Put pages that belong to one file together; those of a file that is not complete wait for the next portion."""
    waiting: list[Made | Failed] = []
    for portion in portions:
        found: list[Made | Failed] = []
        for item in portion:
            waiting.append(item)
            if len(waiting) == item.job.pages:
                found.append(_together(waiting))
                waiting = []
        yield found


def _together(pages: Sequence[Made | Failed]) -> Made | Failed:
    """One file of its pages; a failure if any of them has failed, or if there is none that anything explains."""
    made: list[Made] = []
    for page in pages:
        each = page.kept if isinstance(page, Failed) else page
        if each is None:
            assert isinstance(page, Failed)
            return page
        made.append(each)
    faults = [page for page in pages if isinstance(page, Failed)]
    if len(faults) == len(pages):
        return Failed(faults[0].job, faults[0].fault)
    job, names = made[0].job, made[0].entry.contents
    try:
        contents = {name: bound([page.entry.contents[name] for page in made], _format(name)) for name in names}
    except RestoreError as fault:
        return Failed(job, fault)
    models = list(dict.fromkeys(model for page in made for model in page.entry.models))
    reports = tuple(report for page in made for report in page.reports)
    return Made(job, Entry(made[0].entry.sources, models, contents), reports)
