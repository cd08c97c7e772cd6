"""What denoise and complete do: restore files into files, report on each, and fail if any failed."""

from __future__ import annotations

import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar

import numpy as np

from restore.cli.options import Options, Results
from restore.console import say
from restore.errors import Foreign, InputError, PartialFailure, RestoreError, UsageError, in_command, option, shown
from restore.files import write_atomically
from restore.images import (
    Mask,
    Picture,
    bound,
    check_format,
    check_holds,
    encode,
    format_of,
    page_count,
    page_name,
    picture_of,
    read_mask,
    read_raster,
)
from restore.images.outputs import STDIN, STDIO, STDOUT, expand, means_folder, paired, plan, refuse_clashes
from restore.inference.damage import Damage, Observed, Rates
from restore.inference.open import Engines
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.marginals import Status
from restore.progress import Meter, progress
from restore.zoo import describe, find

# Threads that read and write files while pictures are restored, and how many files are read ahead.
THREADS, AHEAD = 8, 16

# Pictures, or pixels, that are restored together.
CHUNK, CHUNK_PIXELS = 64, 2**17

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(eq=False)
class Job:
    """A file to restore into a file.

    Attributes:
        source, target: their names; STDIO for the standard streams.
        uncertainty: the file of its standard deviations.
        mask: the file of its mask.
        fault: why it has failed.
        records: what became of each page, for reports; empty for a page that has failed.
        objections: why pages were refused.
        contents: of the files to write, page by page.
    """

    source: str
    target: str
    uncertainty: Path | None = None
    mask: Path | None = None
    fault: RestoreError | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    objections: list[str] = field(default_factory=list)
    contents: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "stdin" if self.source == STDIO else self.source

    @property
    def reads(self) -> list[Path | int]:
        """The files, or standard streams, that are read."""
        return [STDIN if self.source == STDIO else Path(self.source), *([] if self.mask is None else [self.mask])]

    @property
    def targets(self) -> list[str]:
        """The files to write; the result is the last one, so it says that all are done."""
        return [*([] if self.uncertainty is None else [str(self.uncertainty)]), self.target]


@dataclass(eq=False)
class Sheet:
    """A page of a file, or its only picture.

    Attributes:
        job: its file.
        page, mask_page: which page of the file, and of its mask, from 0; None for the only one.
        pages: how many the file has.
        picture, mask: as they were read.
        answer: the restored picture.
    """

    job: Job
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

    def record(self, damage: Damage) -> dict[str, Any]:
        """What became of it, for reports and --json."""
        picture, job, answer = self.picture, self.job, self.answer
        assert picture is not None and answer is not None
        notes = [*picture.notes, *(self.mask.notes if self.mask else ()), *answer.notes]
        if answer.refused:
            notes[-1] = f"is left as it is: {notes[-1]}"
        found = answer.level
        known = damage if found is None else replace(damage, **{found.name: found.value})
        return {
            "input": shown(job.source),
            "page": None if self.page is None else self.page + 1,
            "output": shown(job.target),
            "mask": None if job.mask is None else shown(job.mask),
            "model": answer.model or None,
            "engine": answer.engine or None,
            "status": Status(answer.status).name.lower(),
            "iterations": answer.iterations,
            "residual": answer.residual if isfinite(answer.residual) else None,
            "p": known.p,
            "sigma": known.sigma,
            "found": None if found is None else found.name,
            "bits": answer.bits,
            "changed": answer.changed,
            "notes": [note for note in notes if found is None or note != found.sentence],
        }


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
            damage.covering(None if masks is None else np.zeros((1, 1), bool)).check_for(about)
        if about.unfinished and not results.quiet:
            say(f"{shown(options.model)}: is unfinished: {about.unfinished}")
        colour, pixels = about.mixture, about.pixels
    jobs, named = planned(inputs, results, masks)
    if len(jobs) < named and not results.quiet:
        say(f"{named - len(jobs)} of {named} images have their results already, which are left as they are")
    if not jobs:
        return
    engines = Engines(options, named * pixels)
    if options.model != "auto" and isinstance(fault := engines.open(options.model), RestoreError):
        raise fault
    with ExitStack() as stack:
        single = len(jobs) == 1
        meter = stack.enter_context(progress("restored", len(jobs), quiet=results.quiet or single))
        watch = _bar(stack) if single and not results.quiet else lambda share: None
        work = Work(damage, options, results, engines, colour, watch)
        sheets: Iterable[Sheet] = work.sheets(jobs)
        if single:
            sheets = list(sheets)
        pool = None
        if not (single and len(sheets) == 1):
            pool = ThreadPoolExecutor(THREADS, initializer=in_command)
            stack.callback(pool.shutdown, cancel_futures=True)
        read = _ahead(pool, work.read, sheets, AHEAD)
        whole = (job for portion in _portions(read) for job in work.restored(portion))
        for done, job in enumerate(_ahead(pool, work.write, whole, CHUNK), 1):
            failed = [{"input": shown(job.source), "error": str(job.fault)}] if job.fault else None
            for record in (failed or job.records) if results.json else ():
                print(json.dumps(record), flush=True)
            if job.fault and named > 1:
                say(f"restore: {job.fault}")
            meter(done)
    faults = [job.fault for job in jobs if job.fault]
    if faults and named == 1:
        raise faults[0]
    if not results.quiet:
        _report([job for job in jobs if not job.fault], damage)
    if faults:
        raise PartialFailure(f"{len(faults)} of {len(jobs)} images failed; the messages above say why")


def planned(inputs: Sequence[str], results: Results, masks: str | None) -> tuple[list[Job], int]:
    """One job for each image named, or in a folder named, that has no result yet; and how many were named.

    Raises:
        UsageError: if a result would overwrite another one, an input or a mask, or cannot go where it should.
        OutputError: if a result exists already.
    """
    streams = STDIO in inputs or results.output == STDIO
    sources = [Path(each) for each in inputs] if streams else expand(inputs)
    if streams:
        _check_streams(inputs, results)
    output = STDIO if streams and results.output is None else results.output
    targets = [(sources[0], Path(STDIO))] if output == STDIO else paired(sources, output)
    maps = {} if results.uncertainty is None else dict(paired(sources, results.uncertainty, "uncertainty"))
    jobs = [Job(str(source), str(target), maps.get(source), _mask_of(source, masks)) for source, target in targets]
    writes: list[Path | int] = [STDOUT] * results.json
    writes += [STDOUT if each == STDIO else Path(each) for job in jobs for each in job.targets]
    refuse_clashes([each for job in jobs for each in job.reads], writes)
    if output != STDIO:
        again = {"overwrite": results.overwrite, "skip_existing": results.skip_existing}
        left = {target for _, target in plan(sources, output, **again)}
        jobs = [job for job in jobs if Path(job.target) in left]
    if maps:
        # That of a result which does not exist yet may be replaced, where existing ones are left out.
        left_out = {"overwrite": results.overwrite or results.skip_existing, "skip_existing": False}
        plan([Path(job.source) for job in jobs], results.uncertainty, suffix="uncertainty", **left_out)
    for job in jobs:
        format_of(job.target if job.target != STDIO else "-.png")
    return jobs, len(sources)


def _check_streams(inputs: Sequence[str], results: Results) -> None:
    """Refuse options that go with files alone."""
    if len(inputs) != 1:
        raise UsageError("- stands for the only image; name files instead to restore several")
    if results.output in (None, STDIO):
        if results.json:
            raise UsageError(f"{option('json')} and the image cannot both go to stdout; give -o FILE")
        if sys.stdout.isatty():
            raise UsageError("a PNG does not belong on a terminal; give -o FILE or redirect stdout")
    elif results.output is not None and means_folder(results.output):
        raise UsageError(f"{shown(results.output)}: is a folder, but an image from stdin has no name; give -o FILE")


def _mask_of(source: Path, masks: str | None) -> Path | None:
    """The mask of an image: the file given, or the one of the same name in the folder given."""
    if masks is None:
        return None
    folder = Path(masks)
    return folder / source.name if folder.is_dir() else folder


@dataclass(frozen=True)
class Work:
    """What becomes of files, step by step; a file that fails is left out of the steps that follow.

    Attributes:
        damage: as the user described it; masks belong to the jobs.
        options, results: those of the command.
        engines: open the priors.
        colour: True to restore colours.
        watch: is told which share of a single file is done.
    """

    damage: Damage
    options: Options
    results: Results
    engines: Engines
    colour: bool
    watch: Callable[[float], None]

    def sheets(self, jobs: Iterable[Job]) -> Iterator[Sheet]:
        """All pages, in order; files are looked into only when their turn comes."""
        for job in jobs:
            try:
                yield from self._sheets_of(job)
            except RestoreError as fault:
                job.fault = fault
                yield Sheet(job)

    def _sheets_of(self, job: Job) -> list[Sheet]:
        if self.results.frame is not None or job.source == STDIO:
            return [Sheet(job, self.results.frame)]
        most = self.options.max_pixels
        count = page_count(job.source, name=job.source, max_pixels=most)
        for target in job.targets:
            check_holds(count, _format(target), source=job.source, target="stdout" if target == STDIO else target)
        masks = 1 if job.mask is None else page_count(job.mask, name=str(job.mask), max_pixels=most)
        if masks not in (1, count):
            pages = f"holds {masks} pages, and {shown(job.source)} {count}"
            raise InputError(f"{shown(str(job.mask))}: {pages}; give a mask of one page for all, or one for each")
        if count == 1:
            return [Sheet(job)]
        return [Sheet(job, page, page if masks > 1 else None, count) for page in range(count)]

    def read(self, sheet: Sheet) -> Sheet:
        """Read a picture and its mask."""
        job, most = sheet.job, self.options.max_pixels
        if job.fault is not None:
            return sheet
        try:
            source: Any = sys.stdin.buffer if job.source == STDIO else Path(job.source)
            raster = read_raster(source, name=job.name, frame=sheet.page, max_pixels=most)
            if job.mask is not None:
                height, width = raster.levels.shape[:2]
                shape, name = (height, width), str(job.mask)
                sheet.mask = read_mask(job.mask, name=name, shape=shape, frame=sheet.mask_page, max_pixels=most)
            sheet.picture = picture_of(raster, colour=self.colour)
            check_format(sheet.picture, _format(job.target), name=job.target)
        except RestoreError as fault:
            job.fault = fault
        return sheet

    def restored(self, portion: Sequence[Sheet]) -> Iterator[Job]:
        """Restore pictures together; the files of which all pages are restored, or that have failed."""
        self._restore([sheet for sheet in portion if sheet.job.fault is None])
        for sheet in portion:
            job, record = sheet.job, {}
            if job.fault is None:
                try:
                    self._encode(sheet)
                    record = sheet.record(self.damage)
                except RestoreError as fault:
                    job.fault = fault
            job.records.append(record)
            if len(job.records) == sheet.pages:
                if job.fault is None and len(job.objections) == sheet.pages:
                    job.fault = Foreign(f"{shown(job.name)}: {job.objections[0]}")
                yield job

    def _restore(self, sheets: Sequence[Sheet]) -> None:
        observed = [
            Observed(sheet.picture.lazily(), self.damage.covering(sheet.mask and sheet.mask.hidden))
            for sheet in sheets
            if sheet.picture is not None
        ]
        try:
            answers = restore(observed, self.options, self.engines, self._share(sheets))
            for sheet, answer in zip(sheets, answers, strict=True):
                sheet.answer = answer
        except RestoreError as fault:
            if len(sheets) == 1:
                sheets[0].job.fault = type(fault)(f"{sheets[0].name}: {fault}")
            else:  # one of them has it
                for sheet in sheets:
                    self._restore([sheet])

    def _share(self, sheets: Sequence[Sheet]) -> Callable[[float], None]:
        """Tells the bar of a file which share of all its pages is done."""
        before, pages = (sheets[0].page or 0, sheets[0].pages) if sheets else (0, 1)
        return lambda share: self.watch(((before if pages > 1 else 0) + share) / pages)

    def _encode(self, sheet: Sheet) -> None:
        """Make the contents of a restored picture's files; a page that is refused stays as it is."""
        job, picture, answer = sheet.job, sheet.picture, sheet.answer
        assert picture is not None and answer is not None
        if answer.refused:
            job.objections.append(answer.objection)
        values = answer.means if self.options.soft and not answer.refused else answer.estimate
        for target in job.targets:
            of, shades, hidden = picture, values, answer.replaced
            if target != job.target:
                levels = np.zeros(answer.deviations.shape, picture.levels.dtype)
                of, shades, hidden = Picture(levels, stored=picture.stored), 2 * answer.deviations, None
            content = encode(of, shades, format=_format(target), hidden=hidden, name=target)
            job.contents.setdefault(target, []).append(content)

    def write(self, job: Job) -> Job:
        """Write the files of a job to disk, or to stdout."""
        try:
            for name in job.targets if job.fault is None else ():
                content = bound(job.contents[name], _format(name))
                if name == STDIO:
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
                else:
                    write_atomically(name, content)
        except RestoreError as fault:
            job.fault = fault
        job.contents.clear()
        return job


def _format(target: str) -> str:
    return "PNG" if target == STDIO else format_of(target)


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
    """Like `map`, in threads; up to `most` items are worked on before their results are asked for."""
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


def _bar(stack: ExitStack) -> Callable[[float], None]:
    """Shows the progress of one file that takes more than one step."""
    meters: list[Meter] = []

    def watch(share: float) -> None:
        if not meters and 0 < share < 1:
            meters.append(stack.enter_context(progress("restored, in percent", 100)))
        for meter in meters:
            meter(round(100 * share))

    return watch


def _report(jobs: Sequence[Job], damage: Damage) -> None:
    """Tell what was done: of one picture all, of several their notes, each once, and what they have in common."""
    records = [record for job in jobs for record in job.records]
    if not records:
        return
    pages = {job.source: len(job.records) for job in jobs}
    counted = Counter(note for record in records for note in record["notes"])
    for record in records:
        source = "stdin" if record["input"] == STDIO else record["input"]
        name = page_name(source, record["page"] - 1, pages[source]) if pages.get(source, 1) > 1 else source
        for note in record["notes"]:
            if counted[note] == 1:
                say(f"{name}: {note}")
    for note, count in counted.items():
        if count > 1:
            say(f"{count} of {len(records)} images: {note}")
    done = [record for record in records if record["changed"] is None or record["model"]]
    models = Counter(record["model"] for record in done if not Status[record["status"].upper()].refused)
    who = name if len(records) == 1 else f"{models.total()} of {len(records)} images"
    with_each = ", ".join(model if len(models) == 1 else f"{model} ({count})" for model, count in models.items())
    changed = [record["changed"] for record in done if record["changed"] is not None]
    parts = [f"restored with {with_each}", *_levels(done, damage)]
    parts += [f"{fmean(changed):.2%} of pixels changed"] if changed else []
    where = f": {'stdout' if record['output'] == STDIO else record['output']}" if len(jobs) == 1 else ""
    say(f"{who}: {', '.join(parts)}{where}")


def _levels(records: Sequence[dict[str, Any]], damage: Damage) -> list[str]:
    """The noise levels that were given or found."""
    found = {record["found"] for record in records} - {None}
    said = []
    for name in ("p", "sigma"):
        given = getattr(damage, name)
        if name in found:
            values = [fmean(np.ravel(record[name])) for record in records if record["found"] == name]
            span = "" if len(values) == 1 else f", {min(values):.2g} to {max(values):.2g}"
            said.append(f"{name} = {median(values):.2g} (found{span})")
        elif given is not None:
            said.append(f"{name} = {', '.join(map(str, given)) if isinstance(given, Rates) else given}")
    return said
