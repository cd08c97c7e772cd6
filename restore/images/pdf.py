"""Read pages of a PDF as pixels, and write pages as a PDF, with the libraries of the extra `pdf`.

A page that is a scan is read in the resolution of the scan, so that its pixels are those of the scan; any other page in
that of print.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from restore.errors import InputError, UsageError, reason, shown
from restore.images.picture import Stored
from restore.images.raster import Raster, spread

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

# Pixels per inch where a page is no scan, and the most where it is one.
PRINT, FINEST = 300.0, 1200.0
# A page is a scan if one image covers at least this share of it.
COVERED = 0.5
# By how much of a pixel a page is drawn smaller on each side; see `_drawn`.
INSET = 0.02
# It warns of unusual sizes, on stderr by default.
logging.getLogger("img2pdf").addHandler(logging.NullHandler())

# PDFium must not be used by two threads at a time.
_PDFIUM = threading.Lock()


def is_pdf(content: bytes) -> bool:
    """Whether these bytes begin as a PDF does, perhaps after blank lines."""
    return content[:1024].lstrip().startswith(b"%PDF-")


def count(content: bytes, label: str) -> int:
    """The number of pages; errors as in `raster`."""
    with _opened(content, label) as document:
        return len(document)


def areas(content: bytes, label: str) -> list[int]:
    """The number of pixels of each page, before any is drawn; errors as in `raster`."""
    with _opened(content, label) as document:
        return [math.prod(_size(page, _scales(page))) for page in document]


def raster(content: bytes, label: str, page: int, max_pixels: int) -> Raster | None:
    """The pixels of a page, from 0; None if there are more than allowed.

    Raises:
        InputError: if it is damaged, or has a password.
        UsageError: if the library that reads it is not installed.
    """
    with _opened(content, label) as document:
        chosen = document[page]
        scales = _scales(chosen)
        size = _size(chosen, scales)
        if math.prod(size) > max_pixels:
            return None
        levels = _drawn(chosen, *size)
    stored = Stored(dpi=(72 * scales[0], 72 * scales[1]))
    return Raster(levels if spread(levels).any() else levels[..., 1], stored=stored)


def require_writer(name: str) -> None:
    """Raise UsageError, naming a file to write, if the library that writes PDF is not installed."""
    if find_spec("img2pdf") is None:
        raise UsageError(f"{shown(name)}: writing PDF needs img2pdf; pip install 'restore-prior[pdf]'")


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, PNG or TIFF, one a page; their data, and their resolution, are kept as they are."""
    import img2pdf

    return bytes(img2pdf.convert(list(images), nodate=True, engine=img2pdf.Engine.internal))


@contextmanager
def _opened(content: bytes, label: str) -> Iterator[PdfDocument]:
    try:
        import pypdfium2
    except ModuleNotFoundError as fault:
        raise UsageError(f"{label}: reading PDF needs pypdfium2; pip install 'restore-prior[pdf]'") from fault
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(content)
            try:
                if not len(document):
                    raise InputError(f"{label}: is a PDF without pages; get an intact copy")
                yield document
            finally:
                document.close()
        except pypdfium2.PdfiumError as fault:
            why = reason(fault).rstrip(".")
            raise InputError(
                f"{label}: cannot be read as a PDF ({why}); get an intact copy that needs no password"
            ) from fault


def _scales(page: PdfPage) -> tuple[float, float]:
    """Pixels per point, of which an inch has 72, across and down."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    found = [(PRINT / 72, PRINT / 72)]
    for image in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE]):
        place = image.get_matrix()
        across, down = math.hypot(place.a, place.b), math.hypot(place.c, place.d)
        if across * down >= COVERED * math.prod(page.get_size()) > 0:
            width, height = image.get_px_size()
            scales = min(width / across, FINEST / 72), min(height / down, FINEST / 72)
            turned = (abs(place.b) > abs(place.a)) != (page.get_rotation() in (90, 270))
            found.append(scales[::-1] if turned else scales)
    # A scan may be stored in several layers, coarse and fine.
    return max(found[1:] or found)


def _size(page: PdfPage, scales: tuple[float, float]) -> tuple[int, int]:
    """Width and height of a page in pixels."""
    width, height = (max(1, round(side * scale)) for side, scale in zip(page.get_size(), scales, strict=True))
    return width, height


def _drawn(page: PdfPage, width: int, height: int) -> np.ndarray:
    """The pixels of a page, (H, W, 3), on white."""
    from pypdfium2 import PdfBitmap, raw

    # An image that reaches beyond its last pixel by a rounding error would be stretched by one, and blurred.
    across, down = ((pixels - 2 * INSET) / side for pixels, side in zip((width, height), page.get_size(), strict=True))
    bitmap = PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR)
    raw.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
    matrix = raw.FS_MATRIX(across, 0, 0, down, INSET, INSET)
    raw.FPDF_RenderPageBitmapWithMatrix(bitmap, page, matrix, raw.FS_RECTF(0, 0, width, height), raw.FPDF_ANNOT)
    return np.asarray(bitmap.to_numpy())[..., ::-1].copy()
