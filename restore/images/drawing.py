"""Draw pages of a PDF: a program of its own, as a page can cost any amount of time and memory; see `pdf`.

It opens one document, and answers a request a line: a line of JSON, and the pixels of a page if one is asked for.
"""

from __future__ import annotations

import base64
import ctypes
import io
import json
import math
import sys
from typing import Any

import numpy as np
import pypdfium2
from pypdfium2 import PdfDocument, PdfImage, PdfiumError, PdfPage, raw

from restore.images.pdf import limit_memory, limit_time

# Pixels per inch where a page is no scan, and the most where it is one: one image covers this share of it.
PRINT = 300.0
FINEST = 1200.0
COVERED = 0.5
# A page is drawn smaller by this part of a pixel on each side: an image that reached beyond its last pixel by a
# rounding error would be stretched by one, and blurred.
INSET = 0.02
# Filters that hold the pixels of an image in a format of its own, of any length.
CODECS = {"DCTDecode", "JPXDecode", "CCITTFaxDecode", "JBIG2Decode"}


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


def _undecoded(page: PdfPage) -> bool:
    """True if an image of a page cannot be decoded, or ends early: it is drawn as nothing, or as black rows."""
    return any(_broken(image) for image in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]))


def _broken(image: PdfImage) -> bool:
    try:
        image.get_bitmap()
    except PdfiumError:
        return True
    filters, facts = image.get_filters(), image.get_metadata()
    if filters[-1:] == ["DCTDecode"]:
        return _jpeg_ends_early(bytes(image.get_data(decode_simple=True)))
    size = facts.height * ((facts.width * facts.bits_per_pixel + 7) // 8)
    return not CODECS & set(filters) and len(image.get_data(decode_simple=True)) < size


def _jpeg_ends_early(content: bytes) -> bool:
    """True for a JPEG without its end, as Pillow sees it."""
    if content.endswith(b"\xff\xd9"):
        return False
    from PIL import Image  # hardly ever needed

    try:
        Image.open(io.BytesIO(content), formats=("JPEG",)).load()
    except Exception:  # decoders of damaged files raise nearly anything
        return True
    return False


def _outline(page: PdfPage) -> dict[str, Any]:
    """Width and height of a page in pixels, its dots per inch, and whether it is a scan."""
    scales, scan = _scales(page)
    size = [max(1, round(side * scale)) for side, scale in zip(page.get_size(), scales, strict=True)]
    return {"size": size, "dpi": [72 * scale for scale in scales], "scan": scan}


def _page(document: PdfDocument, number: int, max_pixels: int) -> tuple[dict[str, Any], bytes]:
    """What is to be known of a page, from 0, and its pixels if there are not too many."""
    page = document[number]
    facts = _outline(page)
    pixels = b""
    if math.prod(facts["size"]) <= max_pixels:
        pixels = _drawn(page, *facts["size"])
        facts |= {"undecoded": _undecoded(page), "profile": base64.b64encode(_profile(page)).decode()}
    return facts, pixels


def _answer(document: PdfDocument, request: list[int]) -> tuple[dict[str, Any], bytes]:
    """The answer to a request: of a page, or of all, which are outlined alone."""
    try:
        if request:
            return _page(document, *request)
        return {"pages": [_outline(document[number]) for number in range(len(document))]}, b""
    except PdfiumError as fault:
        return {"fault": str(fault)}, b""


def main(path: str, most: int) -> None:
    """Answer for a PDF, first with the number of its pages; `most` is bytes of memory."""
    limit_memory(most)
    limit_time()
    document = None
    try:
        document = PdfDocument(path)
        head: dict[str, Any] = {"count": len(document)}
    except PdfiumError as fault:
        head = {"fault": str(fault)}
    pixels = b""
    while True:
        sys.stdout.buffer.write(json.dumps(head | {"bytes": len(pixels)}).encode() + b"\n" + pixels)
        sys.stdout.buffer.flush()
        line = sys.stdin.buffer.readline()
        if not line or document is None:
            return
        limit_time()
        head, pixels = _answer(document, json.loads(line))


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
