"""What denoise and complete do: restore files into files, report on each, and fail if any failed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from restore.cli.options import Options, Results
from restore.cli.process.pool import ahead, threads
from restore.cli.reports import Failures, print_json, record_of, tell
from restore.console import say
from restore.errors import Foreign, InputError, RestoreError, UsageError, shown
from restore.files import write_atomically
from restore.images import (
    Mask,
    Picture,
    check_format,
    encode,
    format_of,
    read_content,
    read_mask,
    read_picture,
)
from restore.images.outputs import STDIN, STDIO, STDOUT, File, expand, means_folder, paired, plan, refuse_clashes
from restore.images.pages import bound, check_holds, page_count, page_name
from restore.inference.damage import Damage, Observed
from restore.inference.open import Engines
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.progress import progress
from restore.zoo import describe, find

# Files that are read ahead while pictures are restored.
AHEAD = 16

# Pictures, or pixels, that are restored together.
CHUNK, CHUNK_PIXELS = 64, 2**17


@dataclass(eq=False)
class Job:
    """A file to restore into a file.

    Attributes:
        source, mask: the files to read; STDIO for stdin.
        name: that of the source in messages.
        target: the file of the result; STDIO for stdout.
        formats: by the name of each file to write its format; the result is the last one, so it says that all are done.
        fault: why it has failed.
        records: what became of each page so far, for reports; empty for a page that has failed.
        objections: why pages were refused.
        contents: of the files to write, page by page.
    """

    source: str
    name: str
    target: str
    formats: dict[str, str]
    mask: str | None = None
    fault: RestoreError | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    objections: list[str] = field(default_factory=list)
    contents: dict[str, list[bytes]] = field(default_factory=dict)


@dataclass(eq=False)
class Sheet:
    """A page of a file, counted from 0, or its only picture; what is known of it is added step by step."""

    job: Job
    content: bytes = b""
    mask_content: bytes = b""
    page: int | None = None
    mask_page: int | None = None
    pages: int = 1
    picture: Picture | None = None
    mask: Mask | None = None
    answer: Restored | None = None

    @property
    def name(self) -> str:
        name = self.job.name
        return shown(name if self.page is None or self.pages == 1 else page_name(name, self.page, self.pages))


def run(inputs: Sequence[str], damage: Damage, options: Options, results: Results, masks: str | None = None) -> None:
    """Restore every input; see the two commands for the options.

    Raises:
        RestoreError: the error of a single input, or PartialFailure if there were several inputs.
    """
    colour, pixels = damage.sigma is not None, 1
    if options.model != "auto" and (place := find(options.model)).is_dir():
        # The header alone says whether the damage fits the prior.
        about = describe(place)
        if damage.touched or masks is not None:
            replace(damage, hidden=None if masks is None else np.zeros((1, 1), bool)).check_for(about)
        if about.unfinished and not results.quiet:
            say(f"{shown(options.model)}: is unfinished: {about.unfinished}")
        colour, pixels = about.kind.photographs, about.pixels
    jobs, named = planned(inputs, results, masks)
    if len(jobs) < named and not results.quiet:
        say(f"{named - len(jobs)} of {named} images have their results already, which are left as they are")
    engines, failures = Engines(options, named * pixels), Failures(results.json, many=named > 1)
    if jobs and options.model != "auto" and isinstance(fault := engines.open(options.model), RestoreError):
        raise fault
    with ExitStack() as stack:
        single = len(jobs) == 1
        meter = stack.enter_context(progress("restored", 1.0 if single else len(jobs), quiet=results.quiet))
        # Of a single file it shows the share that is done, if it takes several steps.
        work = Work(damage, options, results, engines, colour, meter if single else lambda share: None)
        sheets: Iterable[Sheet] = itertools.chain.from_iterable(map(work.sheets, jobs))
        if single:
            sheets = list(sheets)
        else:
            meter(0)
        pool = None if isinstance(sheets, list) and len(sheets) == 1 else threads(stack)
        read = map(work.read, sheets) if pool is None else ahead(pool, work.read, sheets, AHEAD)
        whole = (job for portion in _portions(read) for job in work.restored(portion))
        written = map(work.write, whole) if pool is None else ahead(pool, work.write, whole, CHUNK)
        for done, job in enumerate(written, 1):
            for record in job.records if results.json and not job.fault else ():
                print_json(record)
            if job.fault:
                failures.add(job.source, job.fault)
            if not single:
                meter(done)
    if not results.quiet:
        tell([job for job in jobs if not job.fault], damage)
    if failures.count:
        raise failures.of(len(jobs))


def planned(inputs: Sequence[str], results: Results, masks: str | None) -> tuple[list[Job], int]:
    """One job for each image named, or in a folder named, that has no result yet; and how many were named.

    Raises:
        UsageError: if a result would overwrite another one, an input or a mask, or cannot go where it should.
        OutputError: if a result exists already.
    """
    output, streams = results.output, STDIO in inputs or results.output == STDIO
    sources = [Path(each) for each in inputs] if streams else expand(inputs)
    if streams:
        output = output or STDIO
        if len(inputs) != 1:
            raise UsageError("- stands for the only image; name files instead to restore several")
        if output == STDIO and (results.json or sys.stdout.isatty()):
            raise UsageError("the image goes to stdout, which is no terminal then, and not for JSON; give -o FILE")
        if output != STDIO and means_folder(output):
            raise UsageError(f"{shown(output)}: is a folder, but an image from stdin has no name; give -o FILE")
    targets = [(sources[0], Path(STDIO))] if output == STDIO else paired(sources, output)
    maps = {} if results.uncertainty is None else dict(paired(sources, results.uncertainty, "uncertainty"))
    folder = Path(masks) if masks is not None and Path(masks).is_dir() else None
    jobs, reads, writes = [], list[File](), list[File]([STDOUT] * results.json)
    for source, target in targets:
        mask = str(folder / source.name) if folder else masks
        formats = {str(maps[source]): format_of(maps[source])} if maps else {}
        formats |= {str(target): "PNG" if output == STDIO else format_of(target)}
        name = "stdin" if str(source) == STDIO else str(source)
        jobs.append(Job(str(source), name, str(target), formats, mask))
        reads += [STDIN if str(source) == STDIO else source, *([Path(mask)] if mask else [])]
        writes += [STDOUT if each == STDIO else Path(each) for each in formats]
    refuse_clashes(reads, writes)
    if output != STDIO:
        pairs = plan(sources, output, overwrite=results.overwrite, skip_existing=results.skip_existing)
        left = {target for _, target in pairs}
        jobs = [job for job in jobs if Path(job.target) in left]
    if maps:
        # That of a result which does not exist yet may be replaced, where existing ones are left out.
        again = results.overwrite or results.skip_existing
        plan(
            [Path(job.source) for job in jobs],
            results.uncertainty,
            suffix="uncertainty",
            overwrite=again,
            skip_existing=False,
        )
    return jobs, len(sources)


@dataclass(frozen=True)
class Work:
    """What becomes of files, step by step; a file that fails is left out of the steps that follow.

    Attributes:
        damage: as the user described it; masks belong to the jobs.
        colour: True to restore colours.
        share: is told which share of a single file is done.
    """

    damage: Damage
    options: Options
    results: Results
    engines: Engines
    colour: bool
    share: Callable[[float], None]

    def sheets(self, job: Job) -> list[Sheet]:
        """The pages of a file, in order."""
        most, frame = self.options.max_pixels, self.results.frame
        try:
            content = read_content(sys.stdin.buffer if job.source == STDIO else job.source, shown(job.name), most)
            mask = b"" if job.mask is None else read_content(job.mask, shown(job.mask), most)
            count = 1 if frame is not None else page_count(content, name=job.name, max_pixels=most)
            masks = 1 if frame is not None or not mask else page_count(mask, name=str(job.mask), max_pixels=most)
            if masks not in (1, count):
                pages = f"holds {masks} pages, and {shown(job.name)} {count}"
                raise InputError(f"{shown(str(job.mask))}: {pages}; give a mask of one page for all, or one for each")
            if count == 1:
                return [Sheet(job, content, mask, frame)]
            for target, format in job.formats.items():
                check_holds(count, format, source=job.name, target="stdout" if target == STDIO else target)
            return [Sheet(job, content, mask, page, page if masks > 1 else None, count) for page in range(count)]
        except RestoreError as fault:
            job.fault = fault
            return [Sheet(job)]

    def read(self, sheet: Sheet) -> Sheet:
        """Read a picture and its mask."""
        job, most = sheet.job, self.options.max_pixels
        if job.fault is None:
            try:
                picture = sheet.picture = read_picture(
                    sheet.content, name=job.name, frame=sheet.page, max_pixels=most, colour=self.colour
                )
                if job.mask is not None:
                    sheet.mask = read_mask(
                        sheet.mask_content, name=job.mask, shape=picture.shape, frame=sheet.mask_page, max_pixels=most
                    )
                check_format(picture, job.formats[job.target], name=job.target)
            except RestoreError as fault:
                job.fault = fault
        sheet.content = sheet.mask_content = b""
        return sheet

    def restored(self, portion: Sequence[Sheet]) -> Iterator[Job]:
        """Restore pictures together; yields the files of which every page is restored, and those that have failed."""
        self._restore([sheet for sheet in portion if sheet.job.fault is None])
        for sheet in portion:
            job, record = sheet.job, {}
            if job.fault is None:
                try:
                    self._encode(sheet)
                    record = record_of(sheet, self.damage)
                except RestoreError as fault:
                    job.fault = fault
            sheet.picture = sheet.mask = sheet.answer = None
            job.records.append(record)
            if sheet.pages > 1:
                self.share(len(job.records) / sheet.pages)
            if len(job.records) == sheet.pages:
                if job.fault is None and len(job.objections) == sheet.pages:
                    job.fault = Foreign(f"{shown(job.name)}: {job.objections[0]}")
                yield job

    def _restore(self, sheets: Sequence[Sheet]) -> None:
        observed = [
            Observed(sheet.picture, replace(self.damage, hidden=sheet.mask.hidden if sheet.mask else None))
            for sheet in sheets
            if sheet.picture is not None
        ]
        watch = self.share if len(sheets) == 1 and sheets[0].pages == 1 else lambda share: None
        try:
            for sheet, answer in zip(sheets, restore(observed, self.options, self.engines, watch), strict=True):
                sheet.answer = answer
        except RestoreError as fault:
            if len(sheets) == 1:
                sheets[0].job.fault = type(fault)(f"{sheets[0].name}: {fault}")
            else:  # one of them has it
                for sheet in sheets:
                    self._restore([sheet])

    def _encode(self, sheet: Sheet) -> None:
        """Make the contents of a restored picture's files; a page that is refused stays as it is."""
        job, picture, answer = sheet.job, sheet.picture, sheet.answer
        assert picture is not None and answer is not None
        if answer.refused:
            job.objections.append(answer.objection)
        values = answer.means if self.options.soft else answer.estimate
        for target, format in job.formats.items():
            of, shades, hidden = picture, values, answer.replaced
            if target != job.target:
                levels = np.zeros(answer.deviations.shape, picture.levels.dtype)
                of, shades, hidden = Picture(levels, info=picture.info), 2 * answer.deviations, None
            content = encode(of, shades, format=format, hidden=hidden, name=target)
            job.contents.setdefault(target, []).append(content)

    def write(self, job: Job) -> Job:
        """Write the files of a job to disk, or to stdout."""
        try:
            for name, format in job.formats.items() if job.fault is None else ():
                content = bound(job.contents[name], format)
                if name == STDIO:
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
                else:
                    write_atomically(name, content)
        except RestoreError as fault:
            job.fault = fault
        job.contents.clear()
        return job


def _portions(sheets: Iterable[Sheet]) -> Iterator[list[Sheet]]:
    """Split pictures into lists that fit into memory."""
    portion: list[Sheet] = []
    pixels = 0
    for sheet in sheets:
        portion.append(sheet)
        pixels += 0 if sheet.picture is None else sheet.picture.levels.size
        if len(portion) == CHUNK or pixels >= CHUNK_PIXELS:
            yield portion
            portion, pixels = [], 0
    if portion:
        yield portion
