"""Draw pages of a PDF: a program of its own, as a page can cost any amount of time and memory; see `pdf`."""

from __future__ import annotations

import base64
import ctypes
import json
import math
import sys
from typing import Any

import numpy as np
import pypdfium2
from pypdfium2 import PdfPage, raw

from restore.images.pdf import limit_memory

# Pixels per inch where a page is no scan, and the most where it is one: one image covers this share of it.
PRINT = 300.0
FINEST = 1200.0
COVERED = 0.5
# A page is drawn smaller by this part of a pixel on each side: an image that reached beyond its last pixel by a
# rounding error would be stretched by one, and blurred.
INSET = 0.02


def _scales(page: PdfPage) -> tuple[tuple[float, float], bool]:
    """Pixels per point (1/72 inch), across and down; and True if the page is a scan."""
    scales = list[tuple[float, float]]()
    for image in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]):
        matrix = image.get_matrix()
        across, down = math.hypot(matrix.a, matrix.b), math.hypot(matrix.c, matrix.d)
        if across * down >= COVERED * math.prod(page.get_size()) > 0:
            width, height = image.get_px_size()
            size = min(width / across, FINEST / 72), min(height / down, FINEST / 72)
            turned = (abs(matrix.b) > abs(matrix.a)) != (page.get_rotation() in (90, 270))
            scales.append(size[::-1] if turned else size)
    # A scan may be stored in several layers, coarse and fine.
    return max(scales, default=(PRINT / 72, PRINT / 72)), bool(scales)


def _profile(page: PdfPage) -> bytes:
    """The colour profile of the only image of a page; empty if it has none, or several images."""
    images = list(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]))
    length = ctypes.c_size_t()
    if len(images) != 1 or not raw.FPDFImageObj_GetIccProfileDataDecoded(images[0], page, None, 0, length):
        return b""
    profile = (ctypes.c_uint8 * length.value)()
    raw.FPDFImageObj_GetIccProfileDataDecoded(images[0], page, profile, length, length)
    return bytes(profile)


def _drawn(page: PdfPage, width: int, height: int) -> bytes:
    """The pixels of a page on white, three bytes each, without notes and forms, which lie on top of it."""
    across, down = ((pixels - 2 * INSET) / side for pixels, side in zip((width, height), page.get_size(), strict=True))
    bitmap = pypdfium2.PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR)
    raw.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
    matrix = raw.FS_MATRIX(across, 0, 0, down, INSET, INSET)
    raw.FPDF_RenderPageBitmapWithMatrix(bitmap, page, matrix, raw.FS_RECTF(0, 0, width, height), 0)
    return np.ascontiguousarray(bitmap.to_numpy()[..., ::-1]).tobytes()


def main(page: int | str | None, max_pixels: int, most: int) -> None:
    """Answer for the PDF on stdin: a line of JSON on its pages, and the pixels of one.

    The page is one from 0, None for the only one, or "all" for sizes alone; `most` is bytes of memory.
    """
    limit_memory(most)
    head: dict[str, Any] = {"sizes": [], "scans": []}
    pixels = b""
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
        count = head["count"] = len(document)
        only = 0 if page is None and count == 1 else page
        for number in range(count) if page == "all" else [only] if isinstance(only, int) and 0 <= only < count else []:
            scales, scan = _scales(document[number])
            sides = zip(document[number].get_size(), scales, strict=True)
            size = [max(1, round(side * scale)) for side, scale in sides]  # width and height in pixels
            head["sizes"].append(size)
            head["scans"].append(scan)
            head["dpi"] = [72 * scale for scale in scales]
            if page != "all" and math.prod(size) <= max_pixels:
                pixels = _drawn(document[number], *size)
                head["profile"] = base64.b64encode(_profile(document[number])).decode()
    except pypdfium2.PdfiumError as fault:
        head = {"fault": str(fault)}
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + pixels)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
