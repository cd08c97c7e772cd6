"""Decide which files of a batch are restored into which, before any is read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from restore.buckets import Place, is_folder, path_of
from restore.cli.batch.jobs import Job
from restore.cli.options import Results
from restore.errors import UsageError, option, require
from restore.images import format_of
from restore.images.outputs import (
    STDIN,
    STDIO,
    STDOUT,
    expand,
    in_part,
    means_folder,
    names_below,
    paired,
    refuse_clashes,
    to_write,
)

# What files beside a result show, and the field of `Results` that names them.
FILES_BESIDE = {"uncertainty": "uncertainty", "marks": "mask_output"}


def planned(inputs: Sequence[str], results: Results, masks: str | None) -> tuple[list[Job], int]:
    """One job for each image named, or in a folder named, that has no result yet; and how many were named.

    Raises:
        UsageError: if a result would overwrite another one, an input or a mask, or cannot go where it should.
        OutputError: if a result exists already.
    """
    output = results.output
    if STDIO in (*inputs, results.output):
        sources = [path_of(path) for path in inputs]
        output = _streamed(inputs, results)
    else:
        sources = expand(inputs)
    beside = {word: place for word, name in FILES_BESIDE.items() if (place := getattr(results, name)) is not None}
    jobs = _jobs(sources, output, beside, masks)
    _refuse_clashes(jobs, results.json)
    if results.part is not None:
        jobs = [job for job, name in zip(jobs, names_below(sources), strict=True) if in_part(name, results.part)]
    return _left(jobs, output, beside, results), len(jobs)


def _streamed(inputs: Sequence[str], results: Results) -> str:
    """Where the only image goes, as it is read from stdin or written to stdout."""
    output = results.output or STDIO
    require(len(inputs) == 1, "- is stdin or stdout, which holds one image; name files, or a folder to write to")
    if results.part is not None:
        raise UsageError("one image has no parts; leave it out", option("part"))
    if output == STDIO and (results.json or sys.stdout.isatty()):
        raise UsageError("the image would go to the terminal, or be mixed with --json; give -o FILE")
    if output != STDIO and means_folder(output):
        raise UsageError("is a folder, but an image from stdin has no name; give -o FILE", output)
    return output


def _jobs(sources: Sequence[Place], output: str | None, beside: dict[str, str], masks: str | None) -> list[Job]:
    """A job for each source; `beside` says by a word of `FILES_BESIDE` where files beside the results go."""
    targets = [(sources[0], Path(STDIO))] if output == STDIO else paired(sources, output)
    pairs = {word: dict(paired(sources, place, word)) for word, place in beside.items()}
    folder = path_of(masks) if masks is not None and is_folder(masks) else None
    jobs = []
    for source, target in targets:
        beside = {str(paths[source]): word for word, paths in pairs.items()}
        formats = {name: "PNG" if name == STDIO else format_of(name) for name in (*beside, str(target))}
        mask = str(folder / source.name) if folder else masks
        jobs.append(Job(str(source), str(target), formats, beside, mask))
    return jobs


def _refuse_clashes(jobs: Sequence[Job], json: bool) -> None:
    """Raise UsageError if a file of one job, or stdout, is also one of another."""
    read = [name for job in jobs for name in (job.source, job.mask) if name]
    written = [name for job in jobs for name in job.formats]
    reads = [STDIN if name == STDIO else path_of(name) for name in read]
    writes = [STDOUT if name == STDIO else path_of(name) for name in written]
    refuse_clashes(reads, [STDOUT, *writes] if json else writes)


def _left(jobs: list[Job], output: str | None, beside: dict[str, str], results: Results) -> list[Job]:
    """The jobs whose results are to be written; of files beside them those that exist are kept, if results are."""
    manner = {"overwrite": results.overwrite, "skip_existing": results.skip_existing}
    left = {STDIO}
    if output != STDIO:
        left |= {str(target) for target in to_write([path_of(job.target) for job in jobs], output, **manner)}
    jobs = [job for job in jobs if job.target in left]
    for word, place in beside.items():
        names = [name for job in jobs for name in job.beside if job.beside[name] == word]
        left |= {str(target) for target in to_write([path_of(name) for name in names], place, **manner)}
    for job in jobs if beside else ():
        job.kept = [name for name in job.formats if name not in left]
        job.formats = {name: format for name, format in job.formats.items() if name in left}
    return jobs
