"""Restore files into files, for denoise and complete: report on each, and fail if any failed."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from restore.buckets import Place, is_folder, path_of
from restore.channels.damage import Damage, Observed
from restore.cli.options import Options, Results
from restore.cli.report import (
    UNTOUCHED,
    Ending,
    Failures,
    one_image,
    print_json,
    record_of,
    record_of_failed,
    summary,
)
from restore.console import progress, say, tell
from restore.errors import InputError, RestoreError, Unforeseen, UsageError, option, require, shown, some
from restore.files import write_atomically
from restore.images import Mask, Picture, check_format, encode, exchanged, format_of, read_mask, read_picture
from restore.images.colours import BY_LUMINANCE
from restore.images.formats import format_in
from restore.images.outputs import (
    STDIN,
    STDIO,
    STDOUT,
    File,
    expand,
    in_part,
    means_folder,
    names_below,
    paired,
    plan,
    refuse_clashes,
)
from restore.images.pages import bound, check_holds, opened, page_count, page_name, scans
from restore.images.pdf import Document
from restore.images.reading import read_content
from restore.inference.open import Engines, in_colour
from restore.inference.portions import portions
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.tiles.blend import Watch
from restore.status import Outcome
from restore.zoo import describe, find

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Threads that read and write files; files that are read ahead; pictures, or pixels, that are restored together.
FILE_THREADS = 8
READ_AHEAD = 16
CHUNK_PICTURES = 64
CHUNK_PIXELS = 2**17

# What files beside a result show, and the field of `Results` that names them.
FILES_BESIDE = {"uncertainty": "uncertainty", "marks": "mask_output"}

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(eq=False)
class Job:
    """A file to restore into a file.

    Attributes:
        source, mask: the files to read; STDIO for stdin.
        name: that of the source in messages.
        target: the file of the result; STDIO for stdout.
        formats: by the name of each file to write its format; the result is the last one, so it says that all are done.
        beside: what files beside the result show, by their names: a word of `FILES_BESIDE`.
        kept: files that exist already, and are not written.
        fault: why it has failed.
        pages: how many the source has, or 1 if one is chosen.
        chosen: True if its picture is one of several that the source holds.
        sheets: those to restore, in order; others are no scans, and stay as they are in their document.
        document: the PDF in which pages are exchanged; empty if the result is written anew.
        content: of the source, until its result is written.
        opened: the files that are open until the last page is read.
    """

    source: str
    name: str
    target: str
    formats: dict[str, str]
    beside: dict[str, str] = field(default_factory=dict)
    mask: str | None = None
    kept: list[str] = field(default_factory=list)
    fault: RestoreError | None = None
    pages: int = 1
    chosen: bool = False
    sheets: list[Sheet] = field(default_factory=list)
    document: bytes = b""
    content: bytes = b""
    opened: list[Document] = field(default_factory=list)

    def open(self, content: bytes, name: str, max_pixels: int) -> bytes | Document:
        """What the pages of a file are read from; it is open until `close`."""
        source = opened(content, name=name, max_pixels=max_pixels)
        self.opened += [source] if isinstance(source, Document) else []
        return source

    def close(self) -> None:
        for document in self.opened:
            document.close()
        self.opened.clear()

    @property
    def as_it_came(self) -> bool:
        """True if nothing changed in any page, and the result has the format of the source."""
        same = all(sheet.answer is not None and sheet.answer.unchanged for sheet in self.sheets)
        return same and not self.chosen and format_in(self.content) == self.formats[self.target]


@dataclass(eq=False, slots=True)
class Sheet:
    """A page of a file, counted from 0, or its only picture; what is known of it is added step by step.

    Attributes:
        content, mask_content: of the files, or what is open of them, until it is read.
        picture, mask: until it is restored.
        images: what to write of it, until that is done, file by file; empty for a page that stays as it is in its
            document.
        answer: what became of it, without its pixels.
        record: the same, for reports.
        fault: why it has failed, though its document has not.
    """

    job: Job
    content: bytes | Document = b""
    mask_content: bytes | Document = b""
    page: int | None = None
    mask_page: int | None = None
    picture: Picture | None = None
    mask: Mask | None = None
    images: list[bytes] = field(default_factory=list)
    answer: Ending | None = None
    record: dict[str, Any] = field(default_factory=dict)
    fault: RestoreError | None = None

    @property
    def name(self) -> str:
        name, pages = self.job.name, self.job.pages
        return shown(name if self.page is None or pages == 1 else page_name(name, self.page, pages))


def run(inputs: Sequence[str], damage: Damage, options: Options, results: Results, masks: str | None = None) -> None:
    """Restore every input; see the two commands for the options.

    Raises:
        RestoreError: the error of a single input, or PartialFailure if there were several inputs.
    """
    note = (lambda text: None) if results.quiet else say
    if options.model != "auto" and (path := find(options.model)).is_dir():
        # The header alone says whether the damage fits the prior.
        header = describe(path)
        if damage.touched or masks is not None:
            header.check_damage(replace(damage, hidden=None if masks is None else np.zeros((1, 1), bool)))
        if header.unfinished:
            note(f"{shown(options.model)}: is unfinished: {header.unfinished}")
    jobs, named = planned(inputs, results, masks)
    kept = [name for job in jobs for name in job.kept]
    if kept:
        note(f"{UNTOUCHED}: {some(kept)}")
    if len(jobs) < named:
        note(f"{named - len(jobs)} of {named} images have results already and are skipped")
    failures = Failures(results.json, many=named > 1, debug=results.debug)
    single, count = len(jobs) == 1, min(results.jobs, len(jobs))
    with ExitStack() as stack:
        # Files that have failed are done, too.
        word, total = ("restored", 1.0) if single else ("done", len(jobs))
        meter = stack.enter_context(progress(word, total, not results.quiet))
        if count > 1:
            from restore.cli.process.shares import shared

            work = partial(finished, damage=damage, options=options, results=results)
            finishing = shared(count, work, jobs, _lost)
        else:  # of a single file it shows the share that is done, if it takes several steps
            finishing = finished(jobs, damage, options, results, meter if single else lambda share: None)
        stack.enter_context(closing(finishing))
        if not single:
            meter(0)
        jobs = []
        for job in finishing:
            jobs.append(job)
            for sheet in job.sheets if results.json and not job.fault else ():
                print_json(sheet.record)
            if results.dry_run and not (job.fault or results.json):
                for line in summary([job], damage, "would be restored"):
                    tell(line)
            if job.fault:
                failures.add(job.source, job.fault)
            if not single:
                meter(len(jobs))
    if not results.dry_run:
        for line in summary([job for job in jobs if not job.fault], damage):
            note(line)
    failures.verdict(len(jobs))


def finished(
    jobs: Sequence[Job], damage: Damage, options: Options, results: Results, share: Watch = lambda share: None
) -> Generator[Job]:
    """Restore and write the files of jobs; yields each job, in order, once that is done or has failed.

    Raises:
        ModelError: if the prior that is named cannot be opened.
    """
    engines, single = Engines(options), len(jobs) == 1
    if jobs and options.model != "auto" and isinstance(fault := engines.open(options.model), RestoreError):
        raise fault
    work = Work(damage, options, results, engines, in_colour(options.model, damage), share)
    sheets: Iterable[Sheet] = chain.from_iterable(map(work.sheets, jobs))
    if single:
        sheets = list(sheets)
    with ExitStack() as stack:
        pool = None
        if not (isinstance(sheets, list) and len(sheets) == 1):
            from concurrent.futures import ThreadPoolExecutor  # a single picture needs no threads

            pool = ThreadPoolExecutor(FILE_THREADS)
            stack.callback(pool.shutdown, cancel_futures=True)
        read = _closing(_ahead(pool, work.read, sheets, READ_AHEAD))
        parts = portions(read, _pixels_of, CHUNK_PICTURES, CHUNK_PIXELS)
        whole = (job for part in parts for job in work.restored(part))
        yield from _ahead(pool, work.write, whole, CHUNK_PICTURES)


def _lost(job: Job, end: str) -> Job:
    """A job whose process has ended before it was done."""
    remedy = "run the command again with --skip-existing, with fewer --jobs if memory was short"
    job.fault = RestoreError(f"its process has ended ({end}); {remedy}", job.name)
    return job


def planned(inputs: Sequence[str], results: Results, masks: str | None) -> tuple[list[Job], int]:
    """One job for each image named, or in a folder named, that has no result yet; and how many were named.

    Raises:
        UsageError: if a result would overwrite another one, an input or a mask, or cannot go where it should.
        OutputError: if a result exists already.
    """
    output, streams = results.output, STDIO in inputs or results.output == STDIO
    sources = [path_of(path) for path in inputs] if streams else expand(inputs)
    if streams:
        output = output or STDIO
        require(len(inputs) == 1, "- is stdin or stdout, which holds one image; name files, or a folder to write to")
        if results.part is not None:
            raise UsageError("one image has no parts; leave it out", option("part"))
        if output == STDIO and (results.json or sys.stdout.isatty()):
            raise UsageError("the image would go to the terminal, or be mixed with --json; give -o FILE")
        if output != STDIO and means_folder(output):
            raise UsageError("is a folder, but an image from stdin has no name; give -o FILE", output)
    targets = [(sources[0], Path(STDIO))] if output == STDIO else paired(sources, output)
    named, maps = _files_beside(sources, results)
    folder = path_of(masks) if masks is not None and is_folder(masks) else None
    jobs, reads, writes = [], list[File](), list[File]([STDOUT] * results.json)
    for source, target in targets:
        mask = str(folder / source.name) if folder else masks
        beside = {str(path): word for word, path in maps.get(source, ())}
        results_of = [*(path for _, path in maps.get(source, ())), target]
        formats = {str(path): "PNG" if str(path) == STDIO else format_of(path) for path in results_of}
        name = "stdin" if str(source) == STDIO else str(source)
        jobs.append(Job(str(source), name, str(target), formats, beside, mask))
        reads += [STDIN if str(source) == STDIO else source, *([path_of(mask)] if mask else [])]
        writes += [STDOUT if str(path) == STDIO else path_of(path) for path in results_of]
    refuse_clashes(reads, writes)
    if results.part is not None:
        sources = [
            path for path, name in zip(sources, names_below(sources), strict=True) if in_part(name, results.part)
        ]
    checked = partial(plan, dry_run=results.dry_run)
    if output != STDIO:
        pairs = checked(sources, output, overwrite=results.overwrite, skip_existing=results.skip_existing)
        left = {str(target) for _, target in pairs}  # without other parts
        jobs = [job for job in jobs if job.target in left]
    for word, place in named.items():
        _keep_maps(jobs, word, place, results, checked)
    return jobs, len(sources)


def _files_beside(
    sources: Sequence[Place], results: Results
) -> tuple[dict[str, str], dict[Place, list[tuple[str, Place]]]]:
    """What files beside results show, with where they go; and for each source these words with its own files."""
    given = {word: getattr(results, name) for word, name in FILES_BESIDE.items()}
    named, own = {word: place for word, place in given.items() if place is not None}, dict[Any, Any]()
    for word, place in named.items():
        for source, path in paired(sources, place, word):
            own.setdefault(source, []).append((word, path))
    return named, own


def _keep_maps(
    jobs: Sequence[Job], word: str, place: str, results: Results, checked: Callable[..., list[tuple[Place, Place]]]
) -> None:
    """Leave out files beside results that exist, if results that exist are left out."""
    todo = [path_of(job.source) for job in jobs]
    kinds = {"overwrite": results.overwrite, "skip_existing": results.skip_existing}
    new = {str(path) for _, path in checked(todo, place, suffix=word, **kinds)}
    for job in jobs:
        job.kept += [name for name in job.formats if job.beside.get(name) == word and name not in new]
        job.formats = {name: format for name, format in job.formats.items() if name not in job.kept}


@dataclass(frozen=True)
class Work:
    """The steps from a file to its result; a file that fails skips those that follow.

    Attributes:
        damage: as the user described it; masks belong to the jobs.
        colour: True to restore colours.
        share: called with the share of a single file that is done.
    """

    damage: Damage
    options: Options
    results: Results
    engines: Engines
    colour: bool
    share: Watch

    def sheets(self, job: Job) -> list[Sheet]:
        """The pages of a file, in order."""
        most, frame = self.options.max_pixels, self.results.frame
        try:
            with one_image(job.name):
                content = read_content(sys.stdin.buffer if job.source == STDIO else job.source, shown(job.name), most)
                source: bytes | Document = job.open(content, job.name, most)
                mask: bytes | Document = b""
                if job.mask is not None:
                    mask = job.open(read_content(job.mask, shown(job.mask), most), job.mask, most)
                count = 1 if frame is not None else page_count(source, name=job.name, max_pixels=most)
                masks = page_count(mask, name=str(job.mask), max_pixels=most) if mask else 1
                if frame is None and masks not in (1, count):
                    pages = f"holds {masks} pages, and {shown(job.name)} {count}"
                    raise InputError(f"{pages}; give a mask of one page for all, or one for each", str(job.mask))
                scanned = None if frame is not None else scans(source, job.formats[job.target], name=job.name)
                for target, format in job.formats.items():
                    check_holds(count, format, source=job.name, target="stdout" if target == STDIO else target)
                job.pages, job.content, job.document = count, content, b"" if scanned is None else content
                numbers = [frame] if count == 1 else range(count) if scanned is None else scanned
                job.sheets = [Sheet(job, source, mask, page, page if masks > 1 else None) for page in numbers]
        except RestoreError as fault:
            job.fault, job.sheets = fault, [Sheet(job)]
        return job.sheets

    def read(self, sheet: Sheet) -> Sheet:
        """Read a picture and its mask."""
        job, most = sheet.job, self.options.max_pixels
        try:
            if job.fault is None:
                with one_image(sheet.name):
                    picture = sheet.picture = read_picture(
                        sheet.content, name=job.name, frame=sheet.page, max_pixels=most, colour=self.colour
                    )
                    if job.mask is not None:
                        shape, frame, content = picture.shape, sheet.mask_page, sheet.mask_content
                        sheet.mask = read_mask(content, name=job.mask, shape=shape, frame=frame, max_pixels=most)
                    job.chosen = job.pages == 1 and sheet.page is not None and picture.one_of_many
                    check_format(picture, job.formats[job.target], name=job.target)
        except RestoreError as fault:
            self._failed(sheet, fault)
        sheet.content = sheet.mask_content = b""
        return sheet

    def _failed(self, sheet: Sheet, fault: RestoreError) -> None:
        """Let a page that fails stay as it is in its document; in any other file it is the file's failure."""
        if sheet.job.document and fault.exit_code != UsageError.exit_code:
            objection = str(fault).removeprefix(f"{shown(fault.subject)}: ")
            sheet.answer, sheet.fault, sheet.picture = Ending(Outcome.NOT_SURE, objection), fault, None
            sheet.record = record_of_failed(sheet)
        else:
            sheet.job.fault = fault

    def restored(self, portion: Sequence[Sheet]) -> Iterator[Job]:
        """Restore pictures together; yields the files whose pages are all restored, and those that have failed."""
        self._restore([sheet for sheet in portion if sheet.job.fault is None and sheet.picture is not None])
        for sheet in portion:
            job, sheet.picture, sheet.mask = sheet.job, None, None
            if job.pages > 1:
                self.share((job.sheets.index(sheet) + 1) / len(job.sheets))
            if sheet is job.sheets[-1]:
                if job.fault is None and all(page.fault for page in job.sheets):
                    job.fault = job.sheets[0].fault
                yield job

    def _restore(self, sheets: Sequence[Sheet]) -> None:
        observed = [
            Observed(
                sheet.picture,
                replace(self.damage, hidden=sheet.mask.hidden if sheet.mask else None),
                BY_LUMINANCE in sheet.picture.notes,
            )
            for sheet in sheets
            if sheet.picture is not None
        ]
        watch = self.share if len(sheets) == 1 and sheets[0].job.pages == 1 else lambda share: None
        if not sheets:
            return
        try:
            with one_image(sheets[0].name):
                answers = restore(observed, self.options, self.engines, watch)
        except RestoreError as fault:
            if len(sheets) == 1:
                own = isinstance(fault, Unforeseen)
                self._failed(sheets[0], fault if own else type(fault)(str(fault), sheets[0].name))
                return
            for sheet in sheets:  # one of them has it
                self._restore([sheet])
            return
        for sheet, answer in zip(sheets, answers, strict=True):
            try:
                if sheet.job.fault is None:
                    with one_image(sheet.name):
                        self._encode(sheet, answer)
            except RestoreError as fault:
                self._failed(sheet, fault)

    def _encode(self, sheet: Sheet, answer: Restored) -> None:
        """Make what to write of a restored picture, and to report; an unchanged page of a document stays as it is."""
        job, picture, lost = sheet.job, sheet.picture, list[str]()
        assert picture is not None
        if self.options.strict:
            answer.require(sheet.name)
        sheet.answer = Ending(answer.outcome, answer.objection)
        values = answer.picture(soft=self.options.soft)
        for target, format in job.formats.items():
            if target != job.target:
                shape = answer.deviations.shape
                marks = np.any([np.zeros(shape, bool), *answer.marks.values()], 0)
                beside = 2 * answer.deviations if job.beside[target] == "uncertainty" else marks.astype(float)
                blank = Picture(np.zeros(shape, picture.levels.dtype), info=picture.info)
                image = encode(blank, beside, format=format, name=target)
            elif answer.unchanged and job.document:
                image = b""
            else:
                image = encode(picture, values, format=format, hidden=answer.replaced, name=target, note=lost.append)
            sheet.images.append(image)
        sheet.record = record_of(sheet, answer, self.damage, lost)

    def write(self, job: Job) -> Job:
        """Write the files of a job to disk, or to stdout."""
        try:
            for number, (name, format) in enumerate(job.formats.items() if job.fault is None else ()):
                with one_image(job.name):
                    content = self._content(job, number, name, format)
                if self.results.dry_run:
                    continue
                if name == STDIO:
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
                else:
                    with one_image(job.name):
                        write_atomically(name, content)
        except RestoreError as fault:
            job.fault = fault
        for sheet in job.sheets:
            sheet.images.clear()
        job.document = job.content = b""
        return job

    def _content(self, job: Job, number: int, name: str, format: str) -> bytes:
        """The file of this name and number of a job, made of its pages."""
        if job.as_it_came and name == job.target:
            return job.content
        if not (job.document and name == job.target):
            return bound([sheet.images[number] for sheet in job.sheets if sheet.images], format)
        done = [sheet for sheet in job.sheets if sheet.images and sheet.images[number]]
        changed = {sheet.page or 0: sheet.images[number] for sheet in done}
        return exchanged(job.document, changed, shown(job.name))


def _closing(sheets: Iterable[Sheet]) -> Iterator[Sheet]:
    """The same pages; the files of a job are closed once its last page is read."""
    for sheet in sheets:
        if sheet is sheet.job.sheets[-1]:
            sheet.job.close()
        yield sheet


def _pixels_of(sheet: Sheet) -> int:
    return 0 if sheet.picture is None else sheet.picture.levels.size


def _ahead(
    pool: ThreadPoolExecutor | None, work: Callable[[Item], Made], items: Iterable[Item], most: int
) -> Iterator[Made]:
    """Like `map`, in threads if there are any; `most` items are worked on before their results are asked for."""
    if pool is None:
        yield from map(work, items)
        return
    under_way: deque[Future[Made]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        while under_way and (len(under_way) > most or under_way[0].done()):
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
