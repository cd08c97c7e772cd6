"""Exchange the scans of a PDF for other images: a program of its own, as a PDF can cost any time and memory; see `pdf`.

All else stays: text, visible or not, links, bookmarks, and what is known of the document.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Matrix, Name, Object, Page, Pdf, Rectangle
from pikepdf.models.ctm import get_objects_with_ctm

from restore.images.pdf import limit_memory

# Entries of an image that follow from its pixels and their storage.
_OF_PIXELS = {"/Width", "/Height", "/ColorSpace", "/BitsPerComponent", "/Decode", "/Filter", "/DecodeParms", "/Length"}
_OF_PIXELS |= {"/ImageMask", "/Mask", "/SMask", "/SMaskInData", "/Alternates"}


def _exchange(document: Pdf, page: Page, sheet: Page) -> None:
    """Show the image of a sheet, another page, in place of the images of a page."""
    # Pages may share their resources, and images.
    resources = page.obj.Resources = Dictionary({**page.resources})
    objects = {**resources.get("/XObject", {})}
    images = {name: item for name, item in objects.items() if item.get("/Subtype") == Name.Image}
    placed = [(name, matrix) for name, matrix in get_objects_with_ctm(page) if name in images]
    (image,) = sheet.resources.XObject.values()
    if len(placed) == 1 and _fits(page, image, images[placed[0][0]], placed[0][1]):
        old = images[placed[0][0]]
        new = document.copy_foreign(image)
        for key in old.keys() - _OF_PIXELS:
            new[key] = old[key]
        if all(isinstance(item.ColorSpace, Array) for item in (old, new)):  # the same profile
            new.ColorSpace = old.ColorSpace
        objects[placed[0][0]] = new
        resources.XObject = Dictionary(objects)
        return
    # Several images, or one that is turned: the new one covers the page, and text is found under it.
    nothing = document.make_stream(b"", Type=Name.XObject, Subtype=Name.Form, BBox=[0, 0, 0, 0])
    cover = document.copy_foreign(sheet.as_form_xobject())
    name = f"/Restored{len(objects)}"
    resources.XObject = Dictionary({**objects, **dict.fromkeys(images, nothing), name: cover})
    page.contents_add(b"q\n", prepend=True)
    page.contents_add(b"Q\n" + page.calc_form_xobject_placement(cover, Name(name), Rectangle(page.cropbox)))


def _fits(page: Page, new: Object, old: Object, matrix: Matrix) -> bool:
    """True if an image is upright and fills its page, and another one has as many pixels."""
    width, height = (int(side) for side in (old.Width, old.Height))
    left, bottom, right, top = (float(side) for side in page.cropbox)
    across = abs(matrix.e - left) + abs(matrix.e + matrix.a - right)
    down = abs(matrix.f - bottom) + abs(matrix.f + matrix.d - top)
    off = across * width / max(matrix.a, 1e-9) + down * height / max(matrix.d, 1e-9)
    turned = matrix.b or matrix.c or page.rotation % 360
    return bool((new.Width, new.Height) == (width, height) and not turned and off < 2)


def main(numbers: list[int], first: int, most: int) -> None:
    """Put the images of the second PDF on stdin on these pages of the first, which has `first` bytes.

    The answer is an empty line, or one of JSON that says why there is none; `most` is bytes of memory.
    """
    limit_memory(most)
    content = sys.stdin.buffer.read()
    stream = io.BytesIO()
    head = dict[str, Any]()
    try:
        with pikepdf.open(io.BytesIO(content[:first])) as document, pikepdf.open(io.BytesIO(content[first:])) as sheets:
            for number, sheet in zip(numbers, sheets.pages, strict=True):
                _exchange(document, document.pages[number], sheet)
            locked = document.is_encrypted
            document.save(stream, encryption=locked, deterministic_id=not locked)
    except (pikepdf.PdfError, ValueError, LookupError, AttributeError, TypeError, RuntimeError) as fault:
        head = {"fault": str(fault)}
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + stream.getvalue())


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
