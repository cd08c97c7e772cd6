"""Files of several pages, TIFF and PDF: how many pages they hold, and files made of pages encoded one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from restore.errors import InputError, option, shown
from restore.images import pdf, tiff
from restore.images.formats import FORMATS, paged
from restore.images.reading import check_together


@dataclass(frozen=True, eq=False)
class Book:
    """A file that is read page by page; close it after the last one.

    Attributes:
        source: what pages are read from: its content, or a PDF that is opened once.
        name: its name for messages.
        max_pixels: the most of a page; of all of them twenty times as many.
    """

    source: bytes | pdf.Document
    name: str
    max_pixels: int

    @classmethod
    def of(cls, content: bytes, name: str, max_pixels: int) -> Book:
        is_pdf = paged(content) == "PDF"
        return cls(pdf.Document(content, shown(name), max_pixels) if is_pdf else content, name, max_pixels)

    @cached_property
    def count(self) -> int:
        """The number of pages of a TIFF or PDF; 1 for all else, such as an animation or what cannot be read.

        Raises InputError for a damaged file, and for pages that are too many, or too large together.
        """
        source = self.source
        if isinstance(source, pdf.Document):
            areas = source.areas if source.count <= tiff.MOST_PAGES else [0] * source.count
        else:
            areas = tiff.pages(source, shown(self.name)) if paged(source) else [0]
        if len(areas) > tiff.MOST_PAGES:
            raise InputError(f"has more than {tiff.MOST_PAGES} pages; split it", shown(self.name))
        if len(areas) > 1:
            check_together(sum(areas), self.name, self.max_pixels)
        return max(1, len(areas))

    def scans(self, format: str) -> list[int] | None:
        """The pages, from 0, of a PDF to exchange in it; None for all else, which is written anew.

        Raises InputError if no page is a scan.
        """
        if not isinstance(self.source, pdf.Document) or format != "PDF":
            return None
        if not self.source.scans:
            raise InputError("holds no scans; name a .tif or .png as output to draw its pages", shown(self.name))
        return self.source.scans

    def close(self) -> None:
        if isinstance(self.source, pdf.Document):
            self.source.close()


def page_name(name: str, page: int, count: int) -> str:
    """The name of a page, from 0, of a file in messages."""
    return f"{name}, page {page + 1} of {count}"


def check_holds(count: int, format: str, *, source: str, target: str) -> None:
    """Raise InputError if a format does not hold this many pages."""
    if count > 1 and not FORMATS[format].pages:
        remedy = f"choose one with {option('frame')} 0 to {count - 1}, or name a .tif as output"
        raise InputError(f"holds {count} pages, and {shown(target)} cannot; {remedy}", source)


def bound(contents: Sequence[bytes], format: str) -> bytes:
    """One file of pages that `encode` has made in a format that holds them; in any other, of the only page."""
    if format == "PDF":
        return pdf.bound(contents)
    return contents[0] if len(contents) == 1 else tiff.bound(contents)
