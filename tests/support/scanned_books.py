"""PDFs of scans with a text layer, links and bookmarks, and what of them has to stay."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from restore.images import Picture, bound, encode

pikepdf: Any = pytest.importorskip("pikepdf")
pypdfium2: Any = pytest.importorskip("pypdfium2")

WORDS, TITLE, ADDRESS = "hidden words", "A title", "https://example.org/"


def page(levels: np.ndarray, dpi: float = 72) -> bytes:
    picture = Picture(levels, info={"dpi": (dpi, dpi)})
    return encode(picture, picture.pixels, format="PDF")


def book(*images: np.ndarray, **facts: Any) -> bytes:
    """A PDF of scans, each with text that is not seen, a link, and a bookmark; `facts` are entries of each page.

    At the end of a page the unit of length is another one, as some programs leave it.
    """
    stream = io.BytesIO()
    with pikepdf.open(io.BytesIO(bound([page(image) for image in images], "PDF"))) as document:
        for number, sheet in enumerate(document.pages):
            font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Times)
            sheet.add_resource(font, pikepdf.Name.Font, pikepdf.Name.F1)
            sheet.contents_add(f"BT 3 Tr /F1 1 Tf 2 5 Td ({WORDS} {number}) Tj ET .5 0 0 .5 3 3 cm".encode())
            action = pikepdf.Dictionary(S=pikepdf.Name.URI, URI=pikepdf.String(ADDRESS))
            link = pikepdf.Dictionary(Type=pikepdf.Name.Annot, Subtype=pikepdf.Name.Link, Rect=[2, 2, 9, 9], A=action)
            sheet.obj.Annots = document.make_indirect(pikepdf.Array([link]))
            for name, value in facts.items():
                sheet.obj[f"/{name}"] = value
        with document.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("Last", len(images) - 1))
        document.docinfo["/Title"] = TITLE
        document.save(stream)
    return stream.getvalue()


def images_of(sheet: Any) -> list[Any]:
    return [each for each in sheet.resources.XObject.values() if each.Subtype == pikepdf.Name.Image]


def same_but_for_scans(content: bytes, count: int) -> None:
    """What is no scan is as in `book`."""
    seen = pypdfium2.PdfDocument(content)
    assert [seen[number].get_textpage().get_text_range() for number in range(count)] == [
        f"{WORDS} {number}" for number in range(count)
    ]
    (bookmark,) = seen.get_toc()
    assert (bookmark.get_title(), bookmark.get_dest().get_index()) == ("Last", count - 1)
    assert seen.get_metadata_dict()["Title"] == TITLE
    with pikepdf.open(io.BytesIO(content)) as document:
        assert [str(sheet.Annots[0].A.URI) for sheet in document.pages] == [ADDRESS] * count
