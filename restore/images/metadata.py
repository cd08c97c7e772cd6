"""What a result keeps of its file beside the pixels, none of which turns the picture: its pixels are upright."""

from __future__ import annotations

import binascii
import contextlib
import re
import struct
import zlib
from typing import Any

from PIL import Image

from restore.images import tiff

# The first bytes of a PNG; its chunks of texts, those that define colours, and those that are kept by other means.
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = (b"iTXt", b"tEXt", b"zTXt")
_COLOURS = (b"cHRM", b"cICP", b"gAMA", b"sRGB")
_OTHERWISE = (b"pHYs", b"eXIf")
# Texts of a PNG in which ImageMagick keeps what other formats hold in bytes, and those that are kept by other means.
_PROFILE = re.compile(rb"Raw profile type (\w+)\0")
_KEPT_ELSEWHERE = (b"exif", b"APP1", b"xmp")
# The most bytes of one.
_PROFILE_BYTES = 2**20
# What stands before EXIF and XMP in a block of a JPEG.
_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
# How XMP says that a picture is turned, by an attribute or an element of this namespace; and what stands before the
# number, and the number, in EXIF of either byte order.
_NAMESPACE = re.compile(rb"""xmlns:([\w-]+)\s*=\s*["']http://ns\.adobe\.com/tiff/1\.0/""")
_IN_XMP = rb"""\b%s:Orientation\s*=\s*["']\s*([1-8])\s*["']|<%s:Orientation\b[^<>]*>\s*([1-8])\s*</[^<>]*>"""
_IN_EXIF = re.compile(
    rb"(\x12\x01[\x03\x04]\0\x01\0\0\0|\x01\x12\0\x03\0\0\0\x01\0|\x01\x12\0\x04\0\0\0\x01\0\0\0)([\x02-\x08])"
)


def metadata(image: Image.Image, content: bytes, page: int) -> tuple[int, dict[str, Any]]:
    """How a picture is turned, 1 to 8 as in EXIF, and what its result keeps, in the words of `Picture.info`.

    These are facts of the pixels and the comment, EXIF, tags of a TIFF, XMP, and chunks of a PNG that stay true if its
    pixels change.
    """
    facts = _facts(image)  # first of all: loading forgets them
    image.getexif()  # of a PNG, it may stand behind the pixels
    exif = image.info.get("exif", b"")
    xmp = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp", b"")
    chunks, of_exif, of_xmp = _parted(_chunks(content))
    exif, of_tiff = exif or of_exif, image.format == "TIFF"
    xmp = xmp.encode("utf-8", "replace") if isinstance(xmp, str) else xmp
    xmp = xmp if isinstance(xmp, bytes) and xmp else of_xmp  # a tag of a TIFF may hold a number
    if not (exif or xmp or of_tiff):  # nothing says that it is turned
        return 1, facts | ({"chunks": chunks} if chunks else {})
    tags = tiff.tags_of(content, page) if of_tiff else tiff.tags_of(exif.removeprefix(_EXIF))
    match = _in_xmp(xmp).search(xmp)
    turned = tiff.orientation(tags) or (int(match[1] or match[2]) if match else 1)
    in_exif, others = tiff.kept(tiff.changed(tags, _upright), exif=not of_tiff)
    kept = {"exif": tiff.exif(in_exif) if in_exif else b"", "tags": others, "chunks": chunks, "xmp": _upright(xmp)}
    kept["dpi"] = facts.get("dpi", ())[:: -1 if turned > 4 else 1]  # it may lie on its side
    return turned, facts | {key: value for key, value in kept.items() if value}


def _parted(chunks: list[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], bytes, bytes]:
    """Chunks of a PNG without those that are profiles of ImageMagick; and EXIF and XMP in these."""
    others = list[tuple[bytes, bytes]]()
    exif = b""
    xmp = b""
    for kind, data in chunks:
        of, profile = _profile(kind, data)
        if profile.startswith(_EXIF):
            exif = exif or profile
        elif profile.startswith(_XMP) or b"<x:xmpmeta" in profile:
            xmp = xmp or profile.removeprefix(_XMP)
        elif not of or (profile and of not in _KEPT_ELSEWHERE and _upright(profile) == profile):
            others.append((kind, _upright(data)))
    return others, exif, xmp


def _in_xmp(data: bytes) -> re.Pattern[bytes]:
    """Finds how XMP says that its picture is turned."""
    named = _NAMESPACE.search(data)
    return re.compile(_IN_XMP % (2 * (re.escape(named[1] if named else b"tiff"),)))


def _upright(data: bytes) -> bytes:
    """The same data, in which neither XMP nor EXIF says that a picture is turned; it keeps its length."""
    return _IN_EXIF.sub(b"\\g<1>\x01", _in_xmp(data).sub(lambda match: b" " * len(match[0]), data))


def _profile(kind: bytes, data: bytes) -> tuple[bytes, bytes]:
    """What a text of a PNG that is a profile of ImageMagick has, and its bytes; both are empty for all else.

    A damaged one has no bytes. It is not kept, as Pillow would refuse the whole picture.
    """
    named = _PROFILE.match(data) if kind in _TEXTS[1:] else None
    if named is None:
        return b"", b""
    with contextlib.suppress(zlib.error, binascii.Error, ValueError, IndexError):
        text = data[named.end() :]
        text = zlib.decompressobj().decompress(text[1:], _PROFILE_BYTES) if kind == b"zTXt" else text
        return named[1], binascii.unhexlify(text.split(b"\n", 3)[3].translate(None, b"\n"))
    return named[1], b""


def _chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG that stay true if its pixels change: those marked so, and colour spaces.

    What is kept by other means is left out: resolution, EXIF and XMP.
    """
    chunks = list[tuple[bytes, bytes]]()
    at = len(_PNG)
    while content.startswith(_PNG) and at + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, at)
        data = content[at + 8 : at + 8 + size]
        at += size + 12
        stays = kind in _COLOURS or (kind[0] & kind[3] & 32 and kind not in _OTHERWISE)
        if stays and not (kind in _TEXTS and data.startswith(b"XML:com.adobe.xmp\0")):
            chunks.append((kind, data))
    return chunks


def _facts(image: Image.Image) -> dict[str, Any]:
    """What Pillow says of a file and its result keeps: a sound resolution, compression, profile and comment."""
    keys = ("icc_profile", "comment", *["compression"][: image.format == "TIFF"])
    kept = {key: image.info[key] for key in keys if image.info.get(key)}
    if not isinstance(kept.get("icc_profile"), bytes):  # a tag of a TIFF may hold anything
        kept.pop("icc_profile", None)
    with contextlib.suppress(KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        across, down = map(float, image.info["dpi"])
        if 1 < across <= 1e5 and 1 < down <= 1e5:  # Pillow says 1 of files without one
            kept["dpi"] = (across, down)
    return kept
