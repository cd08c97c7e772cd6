"""A result is the old file with new pixels: what else was in it stays if the format can hold it, or is named."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bad_images import GREY, encoded, read
from PIL import Image, ImageCms, PngImagePlugin

from restore.errors import InputError
from restore.images import Picture, bound, encode, read_picture

TWO = np.where(np.random.default_rng(3).random((40, 30)) < 0.4, 255, 0).astype(np.uint8)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# A georeference, by the types of its tags: doubles, texts, shorts, bytes, signed rationals, single precision.
GEOGRAPHY: dict[int, tuple[int, Any]] = {
    33550: (12, (10.0, 10.0, 0.0)),
    33922: (12, (0.0, 0.0, 0.0, 5e5, 4.1e6, 0.0)),
    34735: (3, (1, 1, 0, 1, 1024, 0, 1, 1)),
    42113: (2, "-9999"),
    65000: (1, b"bytes of odd lengt"),
    65001: (10, (-0.5, 0.25)),
    65002: (11, (0.1, 0.5)),
    270: (2, "a map"),
}


def tiff(order: str, pages: int = 1) -> bytes:
    """A georeferenced TIFF in a byte order, with EXIF."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    stream, frames = io.BytesIO(), [Image.fromarray(TWO)] * pages
    tags = ImageFileDirectory_v2()
    for tag, (kind, value) in GEOGRAPHY.items():
        tags[tag], tags.tagtype[tag] = value, kind
    tags[34665] = {36867: "2026:01:02 03:04:05"}
    frames[0].save(stream, "TIFF", save_all=True, append_images=frames[1:], tiffinfo=tags)
    return stream.getvalue() if order == "<" else swapped()


def swapped() -> bytes:
    """The same in the order of Motorola: one page, its pixels raw."""
    entries: dict[int, tuple[int, list[Any], str]] = {
        256: (3, [30], "H"), 257: (3, [40], "H"), 258: (3, [8], "H"), 259: (3, [1], "H"), 262: (3, [1], "H"),
        273: (4, [8], "I"), 277: (3, [1], "H"), 278: (3, [40], "H"), 279: (4, [TWO.size], "I"),
        270: (2, [b"a map\0"], "6s"), 42113: (2, [b"-9999\0"], "6s"), 65000: (1, [GEOGRAPHY[65000][1]], "18s"),
        65001: (10, [-1, 2, 1, 4], "4i"), 65002: (11, [0.1, 0.5], "2f"), 34735: (3, [*GEOGRAPHY[34735][1]], "8H"),
        33550: (12, [*GEOGRAPHY[33550][1]], "3d"), 33922: (12, [*GEOGRAPHY[33922][1]], "6d"),
    }  # fmt: skip
    sizes = {1: 1, 2: 1, 3: 2, 4: 4, 10: 8, 11: 4, 12: 8}
    start = 8 + TWO.size
    rows, values = struct.pack(">H", len(entries)), b""
    for tag, (kind, numbers, form) in sorted(entries.items()):
        data = struct.pack(">" + form, *numbers)
        rows += struct.pack(">HHI", tag, kind, len(data) // sizes[kind])
        rows += (
            data.ljust(4, b"\0") if len(data) <= 4 else struct.pack(">I", start + 6 + 12 * len(entries) + len(values))
        )
        values += data if len(data) > 4 else b""
    return b"MM\0*" + struct.pack(">I", start) + TWO.tobytes() + rows + bytes(4) + values


def again(content: bytes, format: str) -> tuple[Any, list[str]]:
    """The result of a file, black for white, and what is said to be lost."""
    notes, picture = list[str](), read(content)
    return Image.open(io.BytesIO(encode(picture, 1 - picture.pixels, format=format, note=notes.append))), notes


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("compression", ["raw", "tiff_adobe_deflate", "packbits"])
def test_tags_of_a_tiff_stay_as_they_were(order: str, compression: str) -> None:
    picture, notes = read(tiff(order)), list[str]()
    picture = replace(picture, info={**picture.info, "compression": compression})
    found: Any = Image.open(io.BytesIO(encode(picture, 1 - picture.pixels, format="TIFF", note=notes.append)))
    for tag, (kind, value) in GEOGRAPHY.items():
        assert found.tag_v2.tagtype[tag] == kind
        assert found.tag_v2[tag] == (pytest.approx(value) if isinstance(value, tuple) else value)
    if order == "<":
        assert dict(found.getexif().get_ifd(34665)) == {36867: "2026:01:02 03:04:05"}
    assert found.info["compression"] == compression
    assert not notes
    np.testing.assert_array_equal(np.asarray(found), 255 - TWO)


def test_tags_stay_on_every_page() -> None:
    content = tiff("<", pages=3)
    pictures = [read_picture(content, name="x", frame=page) for page in range(3)]
    whole = bound([encode(picture, 1 - picture.pixels, format="TIFF") for picture in pictures], "TIFF")
    for page in range(3):
        with Image.open(io.BytesIO(whole)) as found:
            found.seek(page)
            assert found.tag_v2[33922] == GEOGRAPHY[33922][1]  # type: ignore[attr-defined]
            assert found.getexif().get_ifd(34665)[36867] == "2026:01:02 03:04:05"
            np.testing.assert_array_equal(np.asarray(found), 255 - TWO)
    # So do those of a result that is read again.
    assert read_picture(whole, name="x", frame=2).info["tags"] == pictures[0].info["tags"]


def test_what_a_format_cannot_hold_is_named() -> None:
    found, notes = again(tiff("<"), "PNG")
    assert found.getexif()[270] == "a map" and found.getexif().get_ifd(34665)
    (note,) = notes
    assert all(str(tag) in note for tag in (33550, 33922, 42113)) and "EXIF" not in note and "name a .tif" in note
    picture = read(encoded(np.dstack([GREY] * 3), dpi=(300, 300), icc_profile=PROFILE))
    for format, named in (("WEBP", "resolution"), ("PPM", "resolution, colour profile"), ("PNG", "")):
        notes = []
        encode(picture, picture.pixels, format=format, note=notes.append)
        assert named in "".join(notes) and bool(notes) == bool(named)
        assert all("name a .png" in note for note in notes)
    found, (note,) = again(encoded(np.dstack([GREY] * 3), "JPEG", comment=b"Made by a scanner"), "PNG")
    assert "comment" in note and "the original file still has that" in note


@pytest.mark.parametrize("source", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("target", ["PNG", "WEBP", "TIFF"])
def test_exif_stays_and_pixels_are_upright(source: str, target: str) -> None:
    exif = Image.Exif()
    exif[271], exif[306], exif[274] = "A maker", "2026:01:02 03:04:05", 6
    exif.get_ifd(34665)[37386] = 50.0
    exif.get_ifd(34853)[1] = "N"
    found, notes = again(encoded(np.dstack([GREY] * 3), source, exif=exif.tobytes()), target)
    facts = found.getexif()
    assert (facts[271], facts[306], facts.get(274, 1)) == ("A maker", "2026:01:02 03:04:05", 1)
    assert facts.get_ifd(34665)[37386] == 50.0 and facts.get_ifd(34853)[1] == "N"
    assert found.size == GREY.shape  # turned
    assert [note for note in notes if "EXIF" in note or "tags" in note] == []


def test_texts_xmp_and_colour_space_of_a_png_stay() -> None:
    facts = PngImagePlugin.PngInfo()
    facts.add_text("Title", "a page")
    facts.add_itxt("Author", "Müller")
    facts.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta/>")
    facts.add(b"gAMA", struct.pack(">I", 45455))
    facts.add(b"tIME", bytes(7))  # when it was changed
    content = encoded(TWO, pnginfo=facts)
    found, notes = again(content, "PNG")
    found.load()
    assert found.text == {"Title": "a page", "Author": "Müller", "XML:com.adobe.xmp": "<x:xmpmeta/>"}
    assert found.info["gamma"] == 0.45455 and not notes
    for format in ("TIFF", "WEBP"):
        found, notes = again(content, format)
        assert found.info["xmp"] == b"<x:xmpmeta/>" and len(notes) == 1


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP"])
def test_indexed_stays_indexed(format: str) -> None:
    # Class 15 of a palette in which most other entries are black, too.
    image = Image.fromarray(TWO // 17)
    image = Image.frombytes("P", image.size, image.tobytes())
    image.putpalette([0] * 45 + [192, 128, 128] + [0] * 720)
    found, notes = again(encoded(image, format), format)
    assert found.mode == "P" and not notes
    np.testing.assert_array_equal(np.asarray(found), 15 - TWO // 17)
    assert found.getpalette()[:48] == image.getpalette()[:48]
    # Other colours than those of the palette need another file.
    picture = read(encoded(image, format))
    encode(picture, np.full(TWO.shape, 0.5), format=format, note=notes.append)
    assert len(notes) == 1 and "palette" in notes[0]


def test_entries_of_one_colour_are_told_apart_and_transparency_stays() -> None:
    # 1 and 2 are the same colour; only what changes may take another index.
    classes = np.repeat(np.arange(4, dtype=np.uint8), 30).reshape(10, 12)
    image = Image.frombytes("P", (12, 10), classes.tobytes())
    image.putpalette([0, 0, 0, 255, 255, 255, 255, 255, 255, 9, 9, 9])
    hidden = np.zeros(classes.shape, bool)
    hidden[0, :3] = True
    for transparency in (None, b"\xff\xff\x00\x80"):
        picture = read(encoded(image, **{} if transparency is None else {"transparency": transparency}))
        found = Image.open(io.BytesIO(encode(picture, np.ones(classes.shape), format="PNG", hidden=hidden)))
        assert found.mode == "P" and found.info.get("transparency") == transparency
        np.testing.assert_array_equal(np.asarray(found)[~hidden], classes[~hidden])
        assert {*np.asarray(found)[hidden].tolist()} <= ({1, 2} if transparency is None else {1})


def test_broken_exif_is_left_out() -> None:
    for exif in (b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0II*\0\x08\0\0\0\xff\xff", b"Exif\0\0"):
        picture = read(encoded(GREY, "WEBP", exif=exif))
        assert "exif" not in picture.info
    # A directory within itself ends.
    loop = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 34665, 4, 1, 8) + bytes(4)
    assert read(encoded(GREY, "WEBP", exif=loop)).info["exif"]


def grey_profile(gamma: float) -> bytes:
    """A colour profile of greys that are not those of a screen."""
    curve = b"curv" + bytes(4) + struct.pack(">IHH", 1, round(gamma * 256), 0)
    white = struct.pack(">iii", 63190, 65536, 54061)
    tags = {b"desc": b"desc" + bytes(4) + struct.pack(">I", 2) + b"g" + bytes(91), b"cprt": b"text" + bytes(8)}
    tags |= {b"wtpt": b"XYZ " + bytes(4) + white, b"kTRC": curve}
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(body), len(data))
        body += data
    head = bytearray(128)
    struct.pack_into(">I", head, 0, 128 + len(table) + len(body))
    head[8:24], head[36:40], head[68:80] = b"\x02\x10\0\0mntrGRAYXYZ ", b"acsp", white
    return bytes(head) + table + body


@pytest.mark.usefixtures("foreseen")
def test_images_of_a_pdf_keep_their_colour_profile_and_its_levels() -> None:
    pytest.importorskip("pypdfium2")
    pikepdf: Any = pytest.importorskip("pikepdf")
    from restore.images import exchanged

    profile, ramp = grey_profile(1.8), np.tile(np.arange(256, dtype=np.uint8), (64, 1))
    content = bound([encode(Picture(ramp, info={"icc_profile": profile}), ramp / 255, format="PDF")], "PDF")
    with pikepdf.open(io.BytesIO(content)) as document:
        next(iter(document.pages[0].resources.XObject.values())).Interpolate = True
        stream = io.BytesIO()
        document.save(stream)
    picture = read_picture(stream.getvalue(), name="x.pdf")
    # Those drawn for a screen differ by up to 29.
    assert np.abs(picture.levels.astype(int) - ramp).max() <= 3
    other = exchanged(stream.getvalue(), {0: encode(picture, 1 - picture.pixels, format="PDF")}, "x.pdf")
    with pikepdf.open(io.BytesIO(other)) as document:
        (image,) = document.pages[0].resources.XObject.values()
        assert image.ColorSpace[1].read_bytes() == profile and image.Interpolate
    assert np.abs(read_picture(other, name="x.pdf").levels.astype(int) + ramp - 255).max() <= 6
    with Image.open(io.BytesIO(encode(picture, picture.pixels, format="PNG"))) as alone:
        assert alone.info["icc_profile"] == profile


# Where a profile or XMP should be: a text, numbers, one of which is a size that no memory has, or a fraction.
OF_OTHER_TYPES: dict[int, Any] = {2: "profile", 3: 7, 4: 2**32 - 1, 5: 0.5, 12: 0.5}


@pytest.mark.parametrize("kind", OF_OTHER_TYPES)
@pytest.mark.parametrize("target", ["PNG", "WEBP", "TIFF", "PDF"])
def test_a_profile_of_another_type_is_none(kind: int, target: str) -> None:
    picture = read(with_tag(34675, kind))
    assert "icc_profile" not in picture.info
    np.testing.assert_array_equal(read(encode(picture, 1 - picture.pixels, format=target)).levels, 255 - TWO)


@pytest.mark.parametrize("kind", OF_OTHER_TYPES)
def test_xmp_of_another_type_allocates_nothing(kind: int) -> None:
    """Whatever the orientation, with which Pillow looks for it or not."""
    for turned in (1, 6):
        tracemalloc.start()
        with contextlib.suppress(InputError):
            read(with_tag(700, kind, turned))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 2**26


def with_tag(tag: int, kind: int, turned: int = 1) -> bytes:
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    tags = ImageFileDirectory_v2()
    tags[tag], tags.tagtype[tag], tags[274] = OF_OTHER_TYPES[kind], kind, turned
    return encoded(TWO, "TIFF", tiffinfo=tags)
