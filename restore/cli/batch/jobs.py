"""A file to restore into a file, and its pages; what is known of both is added step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from restore.errors import RestoreError, shown
from restore.images import Mask, Picture
from restore.images.formats import format_in
from restore.images.outputs import STDIO
from restore.images.pages import Book, page_name
from restore.images.pdf import Document
from restore.status import Outcome


@dataclass(eq=False)
class Job:
    """A file to restore into a file.

    Attributes:
        source, mask: the files to read; STDIO for stdin.
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
        books: the files that are open until the last page is read.
    """

    source: str
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
    books: list[Book] = field(default_factory=list)

    @property
    def name(self) -> str:
        """That of the source in messages."""
        return "stdin" if self.source == STDIO else self.source

    @property
    def as_it_came(self) -> bool:
        """True if nothing changed in any page, and the result has the format of the source."""
        same = all(sheet.unchanged for sheet in self.sheets)
        return same and not self.chosen and format_in(self.content) == self.formats[self.target]


@dataclass(eq=False, slots=True)
class Sheet:
    """A page of a file, counted from 0, or its only picture.

    Attributes:
        content, mask_content: of the files, or what is open of them, until it is read.
        picture, mask: until it is restored.
        images: what to write of it, until that is done, file by file; empty for a page that stays as it is in its
            document.
        outcome, objection: what it came back as, and if nothing changed, why.
        record: the same and more, for reports.
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
    outcome: Outcome = Outcome.NOT_SURE
    objection: str = ""
    record: dict[str, Any] = field(default_factory=dict)
    fault: RestoreError | None = None

    @property
    def name(self) -> str:
        pages = self.job.pages
        return shown(self.job.name if self.page is None or pages == 1 else page_name(self.job.name, self.page, pages))

    @property
    def unchanged(self) -> bool:
        return self.outcome is not Outcome.RESTORED
