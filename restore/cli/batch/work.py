"""The steps from a file to its result; a file that fails skips those that follow."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.cli.batch.jobs import Job, Sheet
from restore.cli.batch.reports import record_of, record_of_failed
from restore.cli.options import Options, Results
from restore.cli.report import one_image
from restore.errors import InputError, RestoreError, Unforeseen, UsageError, shown
from restore.files import write_atomically
from restore.images import Picture, check_format, encode, exchanged, read_mask, read_picture
from restore.images.outputs import STDIO
from restore.images.pages import Book, bound, check_holds
from restore.images.pdf import Document
from restore.images.reading import read_content
from restore.inference.open import Engines
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.tiles.blend import Watch
from restore.status import Outcome


@dataclass(frozen=True)
class Work:
    """What is done to each file of a batch.

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
        job.sheets = [Sheet(job)]
        with self._page(job.sheets[0]):
            job.sheets = self._pages(job)
        return job.sheets

    def _pages(self, job: Job) -> list[Sheet]:
        most = self.options.max_pixels
        job.content = read_content(sys.stdin.buffer if job.source == STDIO else job.source, shown(job.name), most)
        book = Book.of(job.content, job.name, most)
        job.books.append(book)
        mask: bytes | Document = b""
        masks = 1
        if job.mask is not None:
            job.books.append(Book.of(read_content(job.mask, shown(job.mask), most), job.mask, most))
            mask = job.books[1].source
            masks = job.books[1].count
        frame = self.results.frame
        numbers = self._numbers(job, book, masks) if frame is None else [frame]
        return [Sheet(job, book.source, mask, page, page if masks > 1 else None) for page in numbers]

    def _numbers(self, job: Job, book: Book, masks: int) -> Sequence[int | None]:
        """The pages of a file that are restored, counted from 0; None for its only one."""
        count = job.pages = book.count
        if masks not in (1, count):
            pages = f"holds {masks} pages, and {shown(job.name)} {count}"
            raise InputError(f"{pages}; give a mask of one page for all, or one for each", str(job.mask))
        scanned = book.scans(job.formats[job.target])
        for target, format in job.formats.items():
            check_holds(count, format, source=job.name, target="stdout" if target == STDIO else target)
        if scanned is not None:
            job.document = job.content
        return [None] if count == 1 else range(count) if scanned is None else scanned

    def read(self, sheet: Sheet) -> Sheet:
        """Read a picture and its mask."""
        job = sheet.job
        most = self.options.max_pixels
        if job.fault is None:
            with self._page(sheet):
                picture = sheet.picture = read_picture(
                    sheet.content, name=job.name, frame=sheet.page, max_pixels=most, colour=self.colour
                )
                if job.mask is not None:
                    sheet.mask = read_mask(
                        sheet.mask_content, name=job.mask, shape=picture.shape, frame=sheet.mask_page, max_pixels=most
                    )
                job.chosen = job.pages == 1 and sheet.page is not None and picture.one_of_many
                check_format(picture, job.formats[job.target], name=job.target)
        sheet.content = sheet.mask_content = b""
        return sheet

    @contextmanager
    def _page(self, sheet: Sheet) -> Iterator[None]:
        """Let a page that fails stay as it is in its document; in any other file it is the file's failure."""
        try:
            with one_image(sheet.name):
                yield
        except RestoreError as fault:
            self._failed(sheet, fault)

    def _failed(self, sheet: Sheet, fault: RestoreError) -> None:
        if not sheet.job.document or fault.exit_code == UsageError.exit_code:
            sheet.job.fault = fault
            return
        sheet.outcome = Outcome.NOT_SURE
        sheet.objection = str(fault).removeprefix(f"{shown(fault.subject)}: ")
        sheet.record = record_of_failed(sheet)
        sheet.fault = fault
        sheet.picture = None

    def restored(self, portion: Sequence[Sheet]) -> Iterator[Job]:
        """Restore pictures together; yields the files whose pages are all restored, and those that have failed."""
        self._restore([sheet for sheet in portion if sheet.job.fault is None and sheet.picture is not None])
        for sheet in portion:
            job = sheet.job
            sheet.picture = sheet.mask = None
            if job.pages > 1:
                self.share((job.sheets.index(sheet) + 1) / len(job.sheets))
            if sheet is job.sheets[-1]:
                for book in job.books:
                    book.close()
                job.books.clear()
                if job.fault is None and all(page.fault for page in job.sheets):
                    job.fault = job.sheets[0].fault
                yield job

    def _restore(self, sheets: Sequence[Sheet]) -> None:
        if not sheets:
            return
        watch = self.share if len(sheets) == 1 and sheets[0].job.pages == 1 else lambda share: None
        try:
            with one_image(sheets[0].name):
                answers = restore(list(map(self._observed, sheets)), self.options, self.engines, watch)
        except RestoreError as fault:
            if len(sheets) > 1:
                for sheet in sheets:  # one of them has it
                    self._restore([sheet])
            elif isinstance(fault, Unforeseen):
                self._failed(sheets[0], fault)
            else:
                self._failed(sheets[0], type(fault)(str(fault), sheets[0].name))
            return
        for sheet, answer in zip(sheets, answers, strict=True):
            if sheet.job.fault is None:
                with self._page(sheet):
                    self._encode(sheet, answer)

    def _observed(self, sheet: Sheet) -> Observed:
        assert sheet.picture is not None
        damage = replace(self.damage, hidden=sheet.mask.hidden if sheet.mask else None)
        return Observed(sheet.picture, damage, sheet.picture.colours)

    def _encode(self, sheet: Sheet, answer: Restored) -> None:
        """Make what to write of a restored picture, and to report; an unchanged page of a document stays as it is."""
        job = sheet.job
        picture = sheet.picture
        assert picture is not None
        if self.options.strict:
            answer.require(sheet.name)
        sheet.outcome = answer.outcome
        sheet.objection = answer.objection
        lost = list[str]()
        for target, format in job.formats.items():
            if target != job.target:
                blank = Picture(np.zeros(answer.deviations.shape, picture.levels.dtype), info=picture.info)
                image = encode(blank, _beside(answer, job.beside[target]), format=format, name=target)
            elif answer.unchanged and (job.document or (len(job.sheets) == 1 and job.as_it_came)):
                image = b""
            else:
                values = answer.picture(soft=self.options.soft)
                image = encode(picture, values, format=format, hidden=answer.replaced, name=target, note=lost.append)
            sheet.images.append(image)
        sheet.record = record_of(sheet, answer, self.damage, lost)

    def write(self, job: Job) -> Job:
        """Write the files of a job to disk, or to stdout."""
        try:
            for number, (name, format) in enumerate(job.formats.items() if job.fault is None else ()):
                with one_image(job.name):
                    content = _content(job, number, name, format)
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


def _beside(answer: Restored, word: str) -> np.ndarray:
    """What a file beside a result shows, from 0 to 1."""
    if word == "uncertainty":
        return 2 * answer.deviations
    marks = [np.zeros(answer.deviations.shape, bool), *answer.marks.values()]
    return np.any(marks, 0).astype(float)


def _content(job: Job, number: int, name: str, format: str) -> bytes:
    """The file of this name and number of a job, made of its pages."""
    if job.as_it_came and name == job.target:
        return job.content
    pages = {sheet.page or 0: sheet.images[number] for sheet in job.sheets if sheet.images}
    if job.document and name == job.target:
        return exchanged(job.document, {page: image for page, image in pages.items() if image}, shown(job.name))
    return bound(list(pages.values()), format)
