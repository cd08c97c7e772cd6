"""Files of several pages, TIFF and PDF: how many pages they hold, and files made of pages encoded one by one."""

from __future__ import annotations

from collections.abc import Sequence

from restore.errors import InputError, option, shown
from restore.images import pdf, tiff
from restore.images.formats import FORMATS, paged
from restore.images.reading import check_together


def opened(content: bytes, *, name: str, max_pixels: int) -> bytes | pdf.Document:
    """What pages are read from: the content of a file, or a PDF that is opened once; close it after the last one."""
    return pdf.Document(content, shown(name), max_pixels) if paged(content) == "PDF" else content


def page_count(source: bytes | pdf.Document, *, name: str, max_pixels: int) -> int:
    """The number of pages of a TIFF or PDF; 1 for all else, such as an animation or what cannot be read.

    Raises InputError for a damaged file, and for pages that are too many, or too large together.
    """
    if isinstance(source, bytes) and paged(source) == "PDF":
        with pdf.Document(source, shown(name), max_pixels) as document:
            return page_count(document, name=name, max_pixels=max_pixels)
    if isinstance(source, pdf.Document):
        areas = source.areas if source.count <= tiff.MOST_PAGES else [0] * source.count
    else:
        areas = tiff.pages(source, shown(name)) if paged(source) else [0]
    if len(areas) > tiff.MOST_PAGES:
        raise InputError(f"has more than {tiff.MOST_PAGES} pages; split it", shown(name))
    if len(areas) > 1:
        check_together(sum(areas), name, max_pixels)
    return max(1, len(areas))


def scans(source: bytes | pdf.Document, format: str, *, name: str) -> list[int] | None:
    """The pages, from 0, of a PDF to exchange in it; None for all else, which is written anew.

    Raises InputError if no page is a scan.
    """
    if not isinstance(source, pdf.Document) or format != "PDF":
        return None
    if not source.scans:
        raise InputError("holds no scans; name a .tif or .png as output to draw its pages", shown(name))
    return source.scans


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
