"""Whatever says that a picture is turned: it is read upright, and nothing in its result says so any more."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bad_images import chunk, encoded
from PIL import Image, ImageOps, PngImagePlugin
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from restore.images import Picture, encode, read_picture

PIXELS = (np.arange(48).reshape(6, 8) * 5).astype(np.uint8)
# Where each pixel of the stored picture lies in the upright one, by orientation.
UPRIGHT: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda a: np.rot90(a, 3),
    7: lambda a: np.rot90(a, 2).T,
    8: lambda a: np.rot90(a, 1),
}
WRITTEN = ("PNG", "TIFF", "WEBP")


def exif_of(turned: int) -> bytes:
    exif = Image.Exif()
    exif[0x112] = turned
    content = exif.tobytes()
    return content if content.startswith(b"Exif") else b"Exif\0\0" + content


def xmp_of(turned: int, form: str = "attribute") -> bytes:
    named = {
        "attribute": 'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{}"/>',
        "quoted": "xmlns:tiff='http://ns.adobe.com/tiff/1.0/' tiff:Orientation = '{}'/>",
        "element": 'xmlns:tiff="http://ns.adobe.com/tiff/1.0/"><tiff:Orientation>\n{}</tiff:Orientation></rdf:Description>',
        "prefix": 'xmlns:t="http://ns.adobe.com/tiff/1.0/"><t:Orientation>{}</t:Orientation></rdf:Description>',
        "bare": 'tiff:Orientation="{}"/>',
    }[form]
    described = f"<rdf:Description dc:title='A' {named.format(turned)}"
    return f"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF>{described}</rdf:RDF></x:xmpmeta>".encode()


def profile(kind: str, data: bytes, *, packed: bool) -> bytes:
    """A text of a PNG as ImageMagick writes it."""
    digits = data.hex()
    lines = "\n".join(digits[at : at + 72] for at in range(0, len(digits), 72))
    text, name = f"\n{kind}\n{len(data):8}\n{lines}\n".encode(), f"Raw profile type {kind}".encode()
    return chunk(b"zTXt", name + b"\0\0" + zlib.compress(text)) if packed else chunk(b"tEXt", name + b"\0" + text)


def with_chunk(data: bytes) -> bytes:
    content = encoded(PIXELS)
    at = content.index(b"IDAT") - 4
    return content[:at] + data + content[at:]


def in_tiff(**tags: Any) -> bytes:
    directory = ImageFileDirectory_v2()
    for name, value in tags.items():
        directory[int(name[1:])] = value
        if isinstance(value, bytes):
            directory.tagtype[int(name[1:])] = 1
    return encoded(PIXELS, "TIFF", tiffinfo=directory, dpi=(300, 200))


def in_png(xmp: bytes, **more: Any) -> bytes:
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", xmp.decode())
    return encoded(PIXELS, "PNG", pnginfo=info, dpi=(300, 200), **more)


CARRIERS: dict[str, Callable[[int], bytes]] = {
    "png-exif": lambda n: encoded(PIXELS, "PNG", exif=exif_of(n)),
    "png-xmp": lambda n: in_png(xmp_of(n)),
    "png-xmp-quoted": lambda n: in_png(xmp_of(n, "quoted")),
    "png-xmp-element": lambda n: in_png(xmp_of(n, "element")),
    "png-xmp-prefix": lambda n: in_png(xmp_of(n, "prefix")),
    "png-xmp-bare": lambda n: in_png(xmp_of(n, "bare")),
    "png-both": lambda n: in_png(xmp_of(n), exif=exif_of(n)),
    "png-they-differ": lambda n: in_png(xmp_of(9 - n), exif=exif_of(n)),
    "png-text": lambda n: with_chunk(chunk(b"tEXt", b"XML:com.adobe.xmp\0" + xmp_of(n))),
    "png-packed-text": lambda n: with_chunk(chunk(b"zTXt", b"XML:com.adobe.xmp\0\0" + zlib.compress(xmp_of(n)))),
    "png-profile": lambda n: with_chunk(profile("exif", exif_of(n), packed=False)),
    "png-packed-profile": lambda n: with_chunk(profile("exif", exif_of(n), packed=True)),
    "png-block": lambda n: with_chunk(profile("APP1", exif_of(n), packed=True)),
    "png-xmp-profile": lambda n: with_chunk(profile("xmp", xmp_of(n), packed=True)),
    "png-two": lambda n: with_chunk(chunk(b"eXIf", exif_of(n)[6:]) + profile("exif", exif_of(9 - n), packed=True)),
    "tiff-tag": lambda n: in_tiff(t274=n),
    "tiff-xmp": lambda n: in_tiff(t700=xmp_of(n)),
    "tiff-both": lambda n: in_tiff(t274=n, t700=xmp_of(n)),
    "tiff-photoshop": lambda n: in_tiff(t274=n, t34377=b"8BIM\x04\x22\0\0" + exif_of(n)[6:] + xmp_of(n)),
    "webp-exif": lambda n: encoded(PIXELS, "WEBP", lossless=True, exif=exif_of(n)),
    "webp-xmp": lambda n: encoded(PIXELS, "WEBP", lossless=True, xmp=xmp_of(n)),
    "webp-both": lambda n: encoded(PIXELS, "WEBP", lossless=True, exif=exif_of(n), xmp=xmp_of(n)),
}


def levels(content: bytes) -> np.ndarray:
    return read_picture(content, name="x").levels


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("turned", UPRIGHT)
def test_a_turned_picture_is_upright_in_every_result(carrier: str, turned: int) -> None:
    content = CARRIERS[carrier](turned)
    picture, upright = read_picture(content, name="x"), UPRIGHT[turned](PIXELS)
    np.testing.assert_array_equal(picture.levels, upright)
    assert len(picture.notes) == (turned > 1)
    for format in WRITTEN:
        result = encode(picture, picture.pixels, format=format)
        with Image.open(io.BytesIO(result)) as image:
            np.testing.assert_array_equal(ImageOps.exif_transpose(image).convert("L"), upright)
        again = read_picture(result, name="y")
        np.testing.assert_array_equal(again.levels, upright)
        assert not again.notes and b"Orientation" not in again.info.get("xmp", b"")
        assert not {raw_number(data) for data in bytes_of(again)} & set(range(2, 9))


def bytes_of(picture: Picture) -> list[bytes]:
    """All that a picture keeps in bytes."""
    tags = [value for _, value in picture.info.get("tags", {}).values() if isinstance(value, bytes)]
    return [picture.info.get("exif", b""), *tags]


def raw_number(data: bytes) -> int:
    """The orientation in EXIF, wherever it stands in some bytes."""
    for mark, order in ((b"\x12\x01\x03\0\x01\0\0\0", "<"), (b"\x01\x12\0\x03\0\0\0\x01", ">")):
        if (at := data.find(mark)) >= 0:
            return int.from_bytes(data[at + 8 : at + 10], "little" if order == "<" else "big")
    return 0


@pytest.mark.parametrize("form", ["attribute", "element"])
def test_a_jpeg_is_upright(form: str) -> None:
    for more in ({"xmp": xmp_of(6, form)}, {"exif": exif_of(6), "xmp": xmp_of(6, form)}):
        content = encoded(np.kron(PIXELS, np.ones((8, 8), np.uint8)), "JPEG", quality=95, **more)
        picture = read_picture(content, name="x")
        with Image.open(io.BytesIO(content)) as image:
            np.testing.assert_array_equal(picture.levels, UPRIGHT[6](np.asarray(image)))
        assert picture.shape == (64, 48)
        assert levels(encode(picture, picture.pixels, format="PNG")).shape == (64, 48)


@pytest.mark.parametrize("carrier", ["tiff-tag", "tiff-xmp", "tiff-both", "png-xmp"])
def test_a_picture_on_its_side_has_its_resolutions_exchanged(carrier: str) -> None:
    for turned, wanted in ((1, (300, 200)), (3, (300, 200)), (6, (200, 300))):
        assert read_picture(CARRIERS[carrier](turned), name="x").info["dpi"] == pytest.approx(wanted, abs=0.1)


def test_what_else_is_said_stays() -> None:
    picture = read_picture(CARRIERS["png-xmp"](6), name="x")
    assert b"dc:title='A'" in picture.info["xmp"] and len(picture.info["xmp"]) == len(xmp_of(6))


BROKEN_PROFILES = {
    "no hexadecimals": b"\nexif\n       4\n0102xy04\n",
    "half a byte": b"\nexif\n       4\n010\n",
    "no EXIF": b"\nexif\n       4\n01020304\n",
    "no lines": b"exif",
    "nothing": b"",
}


@pytest.mark.parametrize("text", BROKEN_PROFILES)
@pytest.mark.parametrize("kind", ["exif", "APP1"])
def test_a_broken_profile_makes_no_result_that_cannot_be_read(text: str, kind: str) -> None:
    name = f"Raw profile type {kind}\0".encode()
    packed = chunk(b"zTXt", name + b"\0" + zlib.compress(BROKEN_PROFILES[text]))
    for data in (packed, chunk(b"tEXt", name + BROKEN_PROFILES[text])):
        picture = read_picture(with_chunk(chunk(b"eXIf", exif_of(6)[6:]) + data), name="x")
        np.testing.assert_array_equal(picture.levels, UPRIGHT[6](PIXELS))
        np.testing.assert_array_equal(levels(encode(picture, picture.pixels, format="PNG")), picture.levels)
