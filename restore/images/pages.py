"""Files of several pages, TIFF and PDF: how many pages they hold, and files made of pages encoded one by one."""

from __future__ import annotations

from collections.abc import Sequence

from restore.errors import InputError, option, shown
from restore.images import pdf, tiff
from restore.images.formats import FORMATS, paged
from restore.images.reading import check_together


def page_count(content: bytes, *, name: str, max_pixels: int) -> int:
    """The number of pages of a TIFF or PDF; 1 for all else, such as an animation or what cannot be read.

    Raises InputError for a damaged file, and for pages that are too many, or too large together.
    """
    kind, label = paged(content), shown(name)
    if not kind:
        return 1
    areas = tiff.pages(content, label) if kind == "TIFF" else pdf.areas(content, label)
    if len(areas) > tiff.MOST_PAGES:
        raise InputError(f"has more than {tiff.MOST_PAGES} pages; split it", label)
    if len(areas) > 1:
        check_together(sum(areas), name, max_pixels)
    return max(1, len(areas))


def scans(content: bytes, format: str, *, name: str) -> list[int] | None:
    """The pages, from 0, of a PDF to exchange in it; None for all else, which is written anew.

    Raises InputError if no page is a scan.
    """
    if not paged(content) == format == "PDF":
        return None
    numbers = pdf.scans(content, shown(name))
    if not numbers:
        raise InputError("holds no scans; name a .tif or .png as output to draw its pages", shown(name))
    return numbers


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
