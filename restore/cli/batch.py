"""Restore files into files, for denoise and complete: report on each, and fail if any failed."""

from __future__ import annotations

import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.cli.options import Options, Results
from restore.console import say
from restore.errors import Foreign, InputError, PartialFailure, RestoreError, UsageError, shown
from restore.files import write_atomically
from restore.images import (
    Mask,
    Picture,
    check_format,
    encode,
    exchanged,
    format_of,
    read_content,
    read_mask,
    read_picture,
    scans,
)
from restore.images.colours import BY_LUMINANCE
from restore.images.outputs import STDIN, STDIO, STDOUT, File, expand, means_folder, paired, plan, refuse_clashes
from restore.images.pages import bound, check_holds, page_count, page_name
from restore.inference.open import Engines, in_colour
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.marginals import Status
from restore.progress import progress
from restore.registry import LEVELS
from restore.zoo import describe, find

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Threads that read and write files; files that are read ahead; pictures, or pixels, that are restored together.
THREADS = 8
AHEAD = 16
CHUNK = 64
CHUNK_PIXELS = 2**17

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
        fault: why it has failed.
        records: what became of each page so far, for reports; empty for a page that has failed.
        objections: why pages were refused.
        contents: of the files to write, sheet by sheet; empty for a page that stays as it is in its document.
        pages: how many the source has.
        left: those, from 0, that are no scans, and stay as they are in their document.
        document: the PDF in which pages are exchanged; empty if the result is written anew.
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
    pages: int = 1
    left: tuple[int, ...] = ()
    document: bytes = b""

    @property
    def sheets(self) -> list[int]:
        """The pages to restore, from 0."""
        return [page for page in range(self.pages) if page not in self.left]


@dataclass(eq=False)
class Sheet:
    """A page of a file, counted from 0, or its only picture; what is known of it is added step by step."""

    job: Job
    content: bytes = b""
    mask_content: bytes = b""
    page: int | None = None
    mask_page: int | None = None
    picture: Picture | None = None
    mask: Mask | None = None
    answer: Restored | None = None
    lost: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        name, pages = self.job.name, self.job.pages
        return shown(name if self.page is None or pages == 1 else page_name(name, self.page, pages))


@dataclass
class Failures:
    """Faults of images: that of a single one ends the command; of many, each is reported and counted.

    Attributes:
        json: report them as JSON too.
        many: several images were named.
        count: of faults so far.
    """

    json: bool
    many: bool
    count: int = 0

    def add(self, source: str | Path, fault: RestoreError) -> None:
        if self.json:
            print_json({"input": shown(source), "error": str(fault)})
        if not self.many:
            raise fault
        self.count += 1
        say(f"restore: {fault}")

    def verdict(self, total: int) -> None:
        """Raise PartialFailure if any of the images failed."""
        if self.count:
            raise PartialFailure(f"{self.count} of {total} images failed; the messages above say why")


def print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def run(inputs: Sequence[str], damage: Damage, options: Options, results: Results, masks: str | None = None) -> None:
    """Restore every input; see the two commands for the options.

    Raises:
        RestoreError: the error of a single input, or PartialFailure if there were several inputs.
    """
    note = (lambda text: None) if results.quiet else say
    if options.model != "auto" and (place := find(options.model)).is_dir():
        # The header alone says whether the damage fits the prior.
        header = describe(place)
        if damage.touched or masks is not None:
            header.check_damage(replace(damage, hidden=None if masks is None else np.zeros((1, 1), bool)))
        if header.unfinished:
            note(f"{shown(options.model)}: is unfinished: {header.unfinished}")
    jobs, named = planned(inputs, results, masks)
    if len(jobs) < named:
        note(f"{named - len(jobs)} of {named} images have results already and are skipped")
    engines, failures = Engines(options), Failures(results.json, many=named > 1)
    if jobs and options.model != "auto" and isinstance(fault := engines.open(options.model), RestoreError):
        raise fault
    single = len(jobs) == 1
    with ExitStack() as stack:
        meter = stack.enter_context(progress("restored", 1.0 if single else len(jobs), quiet=results.quiet))
        # Of a single file it shows the share that is done, if it takes several steps.
        colour = in_colour(options.model, damage)
        work = Work(damage, options, results, engines, colour, meter if single else lambda share: None)
        sheets: Iterable[Sheet] = chain.from_iterable(map(work.sheets, jobs))
        if single:
            sheets = list(sheets)
        else:
            meter(0)
        pool = None
        if not (isinstance(sheets, list) and len(sheets) == 1):
            from concurrent.futures import ThreadPoolExecutor  # a single picture needs no threads

            pool = ThreadPoolExecutor(THREADS)
            stack.callback(pool.shutdown, cancel_futures=True)
        portions = _portions(_ahead(pool, work.read, sheets, AHEAD))
        whole = (job for portion in portions for job in work.restored(portion))
        for done, job in enumerate(_ahead(pool, work.write, whole, CHUNK), 1):
            for record in job.records if results.json and not job.fault else ():
                print_json(record)
            if job.fault:
                failures.add(job.source, job.fault)
            if not single:
                meter(done)
    for line in _report([job for job in jobs if not job.fault], damage):
        note(line)
    failures.verdict(len(jobs))


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
            raise UsageError("- is stdin, which holds one image; name files to restore several")
        if output == STDIO and (results.json or sys.stdout.isatty()):
            raise UsageError("the image would go to the terminal, or be mixed with --json; give -o FILE")
        if output != STDIO and means_folder(output):
            raise UsageError("is a folder, but an image from stdin has no name; give -o FILE", output)
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
        left = {str(target) for _, target in pairs}
        jobs = [job for job in jobs if job.target in left]
    if maps:
        # That of a result which does not exist yet may be replaced, where existing ones are left out.
        again = results.overwrite or results.skip_existing
        todo = [Path(job.source) for job in jobs]
        plan(todo, results.uncertainty, suffix="uncertainty", overwrite=again, skip_existing=False)
    return jobs, len(sources)


@dataclass(frozen=True)
class Work:
    """The steps from a file to its result; a file that fails skips those that follow.

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
                raise InputError(f"{pages}; give a mask of one page for all, or one for each", str(job.mask))
            found = None if frame is not None else scans(content, job.formats[job.target], name=job.name)
            for target, format in job.formats.items():
                check_holds(count, format, source=job.name, target="stdout" if target == STDIO else target)
            job.pages, job.document = count, b"" if found is None else content
            job.left = () if found is None else tuple(sorted({*range(count)} - {*found}))
            if count == 1:
                return [Sheet(job, content, mask, frame)]
            return [Sheet(job, content, mask, page, page if masks > 1 else None) for page in job.sheets]
        except RestoreError as fault:
            job.fault = fault
            return [Sheet(job)]

    def read(self, sheet: Sheet) -> Sheet:
        """Read a picture and its mask."""
        job, most = sheet.job, self.options.max_pixels
        try:
            if job.fault is None:
                picture = sheet.picture = read_picture(
                    sheet.content, name=job.name, frame=sheet.page, max_pixels=most, colour=self.colour
                )
                if job.mask is not None:
                    shape, frame = picture.shape, sheet.mask_page
                    sheet.mask = read_mask(sheet.mask_content, name=job.mask, shape=shape, frame=frame, max_pixels=most)
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
            try:
                if job.fault is None:
                    self._encode(sheet)
                    record = _record_of(sheet, self.damage)
            except RestoreError as fault:
                job.fault = fault
            sheet.picture = sheet.mask = sheet.answer = None
            job.records.append(record)
            count = len(job.sheets)
            if job.pages > 1:
                self.share(len(job.records) / count)
            if len(job.records) == count:
                if job.fault is None and len(job.objections) == count:
                    job.fault = Foreign(job.objections[0], job.name)
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
        try:
            for sheet, answer in zip(sheets, restore(observed, self.options, self.engines, watch), strict=True):
                sheet.answer = answer
        except RestoreError as fault:
            if len(sheets) == 1:
                sheets[0].job.fault = type(fault)(str(fault), sheets[0].name)
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
            same = answer.refused and job.document and target == job.target
            note = sheet.lost.append if target == job.target else str
            content = b"" if same else encode(of, shades, format=format, hidden=hidden, name=target, note=note)
            job.contents.setdefault(target, []).append(content)

    def write(self, job: Job) -> Job:
        """Write the files of a job to disk, or to stdout."""
        try:
            for name, format in job.formats.items() if job.fault is None else ():
                if job.document and name == job.target:
                    images = dict(zip(job.sheets, job.contents[name], strict=True))
                    changed = {page: image for page, image in images.items() if image}
                    content = exchanged(job.document, changed, shown(job.name))
                else:
                    content = bound(job.contents[name], format)
                if name == STDIO:
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
                else:
                    write_atomically(name, content)
        except RestoreError as fault:
            job.fault = fault
        job.contents.clear()
        job.document = b""
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


def _record_of(sheet: Sheet, damage: Damage) -> dict[str, Any]:
    """What became of a picture, for reports and --json."""
    picture, job, answer = sheet.picture, sheet.job, sheet.answer
    assert picture is not None and answer is not None
    record, own = answer.record(damage), [*picture.notes, *(sheet.mask.notes if sheet.mask else ())]
    notes = record["notes"]
    if answer.refused:
        notes[-1] = f"is left as it is: {notes[-1]}"
    return {
        "input": shown(job.source),
        "page": None if sheet.page is None else sheet.page + 1,
        "output": shown(job.target),
        "mask": None if job.mask is None else shown(job.mask),
        **record,
        "notes": [*own, *notes, *sheet.lost],
    }


def _report(jobs: Sequence[Job], damage: Damage) -> Iterator[str]:
    """Lines on what was done: notes on each picture, a note on several of them once, and what all have in common."""
    records = [(job, record) for job in jobs for record in job.records]
    counted = Counter(note for _, record in records for note in record["notes"])
    for job, record in records:
        name = shown(job.name) if job.pages == 1 else page_name(shown(job.name), record["page"] - 1, job.pages)
        yield from (f"{name}: {note}" for note in record["notes"] if counted[note] == 1)
    yield from (f"{count} of {len(records)} images: {note}" for note, count in counted.items() if count > 1)
    for job in jobs:
        if job.left:
            numbers = ", ".join(str(page + 1) for page in job.left)
            yield f"{shown(job.name)}: left as they are, as they are no scans: pages {numbers}"
    done = [record for _, record in records if not Status[record["status"].upper()].refused]
    if not done:
        return
    models = Counter(record["model"] for record in done).most_common()
    parts = [f"restored with {', '.join(f'{name} ({count})' for name, count in models)}"]
    if len(models) == 1:
        parts = [f"restored with {models[0][0]}"]
    for kind in LEVELS:
        given: Any = getattr(damage, kind)
        found = [float(np.mean(record[kind])) for record in done if record["found"] == kind]
        if found:
            span = f", {min(found):.2g} to {max(found):.2g}" if len(found) > 1 else ""
            parts.append(f"{kind} = {np.median(found):.2g} (found{span})")
        elif given is not None:
            parts.append(f"{kind} = {given}")
    changed = [record["changed"] for record in done if record["changed"] is not None]
    parts += [f"{np.mean(changed):.2%} of pixels changed"] if changed else []
    who = name if len(records) == 1 else f"{len(done)} of {len(records)} images"
    target = "stdout" if jobs[0].target == STDIO else shown(jobs[0].target)
    yield f"{who}: {', '.join(parts)}" + (f": {target}" if len(jobs) == 1 else "")
