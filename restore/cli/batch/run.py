"""Restore files into files, for denoise and complete: report on each, and fail if any failed."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from restore import signals
from restore.buckets import path_of
from restore.channels.damage import Damage
from restore.cli.batch.jobs import Job, Sheet
from restore.cli.batch.planning import planned
from restore.cli.batch.reports import summary
from restore.cli.batch.work import Work
from restore.cli.options import Options, Results
from restore.cli.report import UNTOUCHED, Failures, print_json
from restore.console import progress, say, tell
from restore.errors import RestoreError, RestoreWarning, shown, some
from restore.images.outputs import STDIO, make_ready
from restore.inference.open import Engines
from restore.inference.threads import portions
from restore.inference.tiles.blend import Watch
from restore.zoo.description import Description

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Threads that read and write files; files that are read ahead; pictures, or pixels, that are restored together.
FILE_THREADS = 8
READ_AHEAD = 16
CHUNK_PICTURES = 64
CHUNK_PIXELS = 2**17

Item = TypeVar("Item")
Made = TypeVar("Made")


def run(inputs: Sequence[str], damage: Damage, options: Options, results: Results, masks: str | None = None) -> None:
    """Restore every input; see the two commands for the options.

    Raises:
        RestoreError: the error of a single input, or PartialFailure if there were several inputs.
    """
    note = (lambda text: None) if results.quiet else say
    jobs, named = planned(inputs, results, masks)
    for line in _skipped(jobs, named):
        note(line)
    failures = Failures(results.json, many=named > 1, debug=results.debug)
    work = partial(finished, damage=damage, options=options, results=results)
    done = list[Job]()
    # Of a single file the share that is done is shown, if it takes several steps; files that have failed are done, too.
    single = len(jobs) == 1
    with ExitStack() as stack:
        meter = stack.enter_context(
            progress("restored" if single else "done", 1.0 if single else len(jobs), not results.quiet)
        )
        for job in stack.enter_context(closing(_at_work(work, jobs, results.jobs, meter))):
            done.append(job)
            _report(job, damage, results, failures)
            if not single:
                meter(len(done))
    if not results.dry_run:
        for line in summary([job for job in done if not job.fault], damage):
            note(line)
    failures.verdict(len(done))


def _skipped(jobs: Sequence[Job], named: int) -> Iterator[str]:
    """What there is to say of files that exist already."""
    kept = [name for job in jobs for name in job.kept]
    if kept:
        yield f"{UNTOUCHED}: {some(kept)}"
    if len(jobs) < named:
        yield f"{named - len(jobs)} of {named} images have results already and are skipped"


def _at_work(
    work: Callable[..., Generator[Job]], jobs: list[Job], processes: int, meter: Callable[[float], None]
) -> Generator[Job]:
    if len(jobs) != 1:
        meter(0)
    count = min(processes, len(jobs))
    if count <= 1:
        return work(jobs, share=meter)
    from restore.cli.process.shares import shared

    return shared(count, work, jobs, _lost)


def _lost(job: Job, end: str) -> Job:
    """A job whose process has ended before it was done."""
    remedy = "run the command again with --skip-existing, with fewer --jobs if memory was short"
    job.fault = RestoreError(f"its process has ended ({end}); {remedy}", job.name)
    return job


def _report(job: Job, damage: Damage, results: Results, failures: Failures) -> None:
    if job.fault:
        failures.add(job.source, job.fault)
    elif results.json:
        for sheet in job.sheets:
            print_json(sheet.record)
    elif results.dry_run:
        for line in summary([job], damage, "would be restored"):
            tell(line)


def finished(
    jobs: Sequence[Job], damage: Damage, options: Options, results: Results, share: Watch = lambda share: None
) -> Generator[Job]:
    """Restore and write the files of jobs; yields each job, in order, once that is done or has failed.

    Args:
        share: called with the share of a single file that is done.

    Raises:
        ModelError: if the prior that is named cannot be opened.
        UsageError: if it does not take the damage.
    """
    engines = Engines(options)
    single = len(jobs) == 1
    if engines.only is not None:
        masked = any(job.mask is not None for job in jobs)
        _check(engines.only.header, damage, masked=masked)
        if engines.only.header.unfinished and not results.quiet:
            note = f"{shown(options.model)} is unfinished: {engines.only.header.unfinished}"
            warnings.warn(note, RestoreWarning, stacklevel=2)
    if not results.dry_run:
        make_ready(path_of(name) for job in jobs for name in job.formats if name != STDIO)
    work = Work(damage, options, results, engines, engines.in_colour(damage), share if single else lambda share: None)
    sheets: Iterable[Sheet] = chain.from_iterable(map(work.sheets, jobs))
    if single:
        sheets = list(sheets)
    with ExitStack() as stack:
        pool = None
        if not (isinstance(sheets, list) and len(sheets) == 1):
            from concurrent.futures import ThreadPoolExecutor  # a single picture needs no threads

            pool = ThreadPoolExecutor(FILE_THREADS)
            stack.callback(pool.shutdown, cancel_futures=True)
        read = _ahead(pool, work.read, sheets, READ_AHEAD)
        parts = portions(
            read, lambda sheet: sheet.picture.levels.size if sheet.picture else 0, CHUNK_PICTURES, CHUNK_PIXELS
        )
        whole = (job for part in parts for job in work.restored(part))
        yield from _ahead(pool, work.write, whole, CHUNK_PICTURES)


def _check(header: Description, damage: Damage, *, masked: bool) -> None:
    """Raise UsageError if the prior that is named does not take the damage."""
    if damage.touched or masked:
        header.check_damage(replace(damage, hidden=np.zeros((1, 1), bool) if masked else None))


def _ahead(
    pool: ThreadPoolExecutor | None, work: Callable[[Item], Made], items: Iterable[Item], most: int
) -> Iterator[Made]:
    """Like `map`, in threads if there are any; `most` items are worked on before their results are asked for."""
    if pool is None:
        yield from map(work, items)
        return
    under_way: deque[Future[Made]] = deque()
    for item in items:
        with signals.Held():
            under_way.append(pool.submit(work, item))
        yield from _made(under_way, most)
    yield from _made(under_way, 0)


def _made(under_way: deque[Future[Made]], most: int) -> Iterator[Made]:
    """Take the first results, in order, that are there, and those of more items than `most`."""
    while under_way:
        with signals.Held():
            if len(under_way) <= most and not under_way[0].done():
                return
            made = under_way.popleft().result()
        yield made
