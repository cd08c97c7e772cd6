"""Checks of a TIFF that Pillow lacks: its promised size, before it is read, and strips that end too early."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import math
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from PIL import Image
from PIL.ExifTags import Base as Tag
from PIL.ImageFile import ImageFile

from restore.errors import InputError

# The most pages of a file, entries of a page's directory, and strips or tiles of a page: Pillow takes about 300 bytes
# and 2 microseconds for each of the last.
MOST_PAGES = 1000
MOST_ENTRIES = 4096
MOST_STRIPS = 100_000

# Compressions of a fax, of groups 3 and 4.
_FAX = (3, 4)
# Where strips or tiles begin, and how long they are.
_PLACES, _LENGTHS = (Tag.StripOffsets, Tag.TileOffsets), (Tag.StripByteCounts, Tag.TileByteCounts)
# Bytes of a value, by its type.
_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
# Directories within a directory, by tag, and those within them: EXIF, what it says of other readers, and GPS.
_WITHIN = {34665: (40965,), 34853: (), 40965: ()}
# What describes how pixels are stored, or is derived from them; orientation, profile and XMP are kept by other means.
_LAYOUT = {*range(256, 260), *range(262, 267), 273, 274, *range(277, 285), 288, 289, 290, 291, 292, 293, 296, 301, 317}
_LAYOUT |= {*range(320, 329), 330, *range(332, 335), *range(336, 343), 347, *range(512, 533), 700, 34675}
# Tags that EXIF defines outside of its own directory; the profile gives the colour space.
_OF_EXIF = {270, 271, 272, 305, 306, 315, 318, 319, 33432, 34665, 34853, *range(40091, 40096)}
# Two or more ends of lines are the end of fax data, to a decoder too.
_END_OF_LINE, _END_MARKS = "000000000001", re.compile("(0{11}11?){2,}0*$")
# A decoder reads these in different ways.
_NOISES = ("1" * 96, "001000111010" * 8)


# A directory: by tag the type of its values, and their bytes, little-endian, or a directory within it.
Tags = dict[int, tuple[int, Any]]


def _form(content: bytes) -> tuple[str, str, str, str]:
    """The formats, as in `struct`, of a file's byte order, offsets, number of entries and head of an entry."""
    order = "<" if content[:2] == b"II" else ">"
    return (order, "Q", "Q", "HHQ") if content[2:3] == b"+" else (order, "I", "H", "HHI")


def _entries(content: bytes, start: int) -> tuple[list[tuple[int, int, int, int]], int]:
    """Tag, type, number of values, and place of these or of their offset; and the place of the next one's offset."""
    order, pointer, count, head = _form(content)
    (number,) = struct.unpack_from(order + count, content, start)
    if number > MOST_ENTRIES:
        raise OverflowError
    at, size = start + struct.calcsize(count), struct.calcsize(order + head)
    places = [at + index * (size + struct.calcsize(pointer)) for index in range(number + 1)]
    return [(*struct.unpack_from(order + head, content, at), at + size) for at in places[:-1]], places[-1]


def pages(content: bytes, label: str) -> list[int]:
    """The pixels of each page, or of its tile if that is larger; raises InputError if the file promises too much."""
    order, pointer, *_ = _form(content)
    at, sizes = struct.calcsize(pointer), dict[int, int]()
    try:
        while (start := struct.unpack_from(order + pointer, content, at)[0]) and start not in sizes:
            entries, at = _entries(content, start)
            promised, sides = 0, dict[int, int]()
            if len(sizes) == MOST_PAGES:
                raise InputError(f"has more than {MOST_PAGES} pages, or is damaged; split it", label)
            for tag, kind, number, value in entries:
                if tag in _PLACES and number > MOST_STRIPS:
                    raise InputError(f"has more than {MOST_STRIPS} strips or tiles; save it anew as PNG", label)
                (sides[tag],) = struct.unpack_from(order + ("H" if kind == 3 else pointer), content, value)
                promised += number * _BYTES.get(kind, 1)
            if promised > 4 * len(content):
                raise InputError("is damaged (it promises more than it holds); get an intact copy", label)
            area, tile = ((Tag.ImageWidth, Tag.ImageLength), (Tag.TileWidth, Tag.TileLength))
            sizes[start] = max(math.prod(sides.get(side, 0) for side in pair) for pair in (area, tile))
    except (struct.error, OverflowError) as fault:
        raise InputError("is damaged (a page of it lies outside the file); get an intact copy", label) from fault
    return list(sizes.values())


def kept(content: bytes, page: int = 0, *, exif: bool = False) -> tuple[Tags, Tags]:
    """The tags of a page, without those of its pixels' layout: those that EXIF has too, and the others.

    With `exif` the content is that of EXIF itself, which is built like a TIFF, and has all of them. What lies outside
    of the content is left out.
    """
    order, pointer, *_ = _form(content)
    at, tags = struct.calcsize(pointer), Tags()
    with contextlib.suppress(struct.error, OverflowError):
        for _ in range(page + 1):
            (start,) = struct.unpack_from(order + pointer, content, at)
            _, at = _entries(content, start)
        tags = _tags(content, start, (34665, 34853))
    tags = {tag: value for tag, value in tags.items() if tag not in _LAYOUT}
    both = Tags(), Tags()
    for tag, value in tags.items():
        both[not exif and tag not in _OF_EXIF][tag] = value
    return both


def _tags(content: bytes, start: int, within: Sequence[int]) -> Tags:
    """Read a directory, and the directories within it under some of its tags."""
    order, pointer, *_ = _form(content)
    tags, room = Tags(), 4 * len(content)
    for tag, kind, number, at in _entries(content, start)[0]:
        unit, size = 4 if kind in (5, 10) else _BYTES.get(kind, 1), number * _BYTES.get(kind, 1)
        room -= size
        if room < 0:
            raise OverflowError
        (offset,) = struct.unpack_from(order + pointer, content, at)
        data = content[at : at + size] if size <= struct.calcsize(pointer) else content[offset : offset + size]
        if tag in within:
            with contextlib.suppress(struct.error, OverflowError):
                tags[tag] = 4, _tags(content, offset, _WITHIN[tag])
        elif 0 < size == len(data) and kind in range(1, 14):  # later ones belong to BigTIFF
            tags[tag] = kind, np.frombuffer(data, f"{order}u{unit}").astype(f"<u{unit}").tobytes()
    return tags


def exif(tags: Tags) -> bytes:
    """The content of EXIF with these tags."""
    return b"Exif\0\0II*\0\x08\0\0\0" + _directory(tags, 8)


def bound(contents: Iterable[bytes], more: Tags | None = None) -> bytes:
    """One file of TIFFs with one page each, as Pillow writes them, each page with some more tags."""
    book, link = bytearray(b"II*\0\0\0\0\0"), 4
    for content in contents:
        base = len(book)
        tags = _tags(content, struct.unpack_from("<I", content, 4)[0], (34665, 34853)) | (more or {})
        for tag in tags.keys() & {*_PLACES}:
            kind, offsets = tags[tag]
            tags[tag] = 4, (np.frombuffer(offsets, f"<u{_BYTES[kind]}") + base).astype("<u4").tobytes()
        book += content + bytes(len(content) % 2)
        struct.pack_into("<I", book, link, len(book))
        link = len(book) + 2 + 12 * len(tags)
        book += _directory(tags, len(book))
    return bytes(book)


def _directory(tags: Tags, base: int) -> bytes:
    """The only or last directory of a file, at this place of it, with its values behind it."""
    rows, values, first = struct.pack("<H", len(tags)), b"", base + 2 + 12 * len(tags) + 4
    for tag, (kind, value) in sorted(tags.items()):
        at = first + len(values)
        data = value if isinstance(value, bytes) else _directory(value, at)
        number = 1 if data is not value else len(data) // _BYTES.get(kind, 1)
        inside = data is value and len(data) <= 4
        rows += struct.pack("<HHI", tag, kind, number) + (data.ljust(4, b"\0") if inside else struct.pack("<I", at))
        values += b"" if inside else data + bytes(len(data) % 2)
    return rows + bytes(4) + values


def check_rows(image: ImageFile, content: bytes, label: str) -> None:
    """Refuse a page that lacks rows where Pillow and libtiff do not: strips are missing, or fax data end early."""
    tags = image.tag_v2  # type: ignore[attr-defined]
    places, lengths = (next((tags[tag] for tag in group if tag in tags), ()) for group in (_PLACES, _LENGTHS))
    width, height = tags[Tag.ImageWidth], tags[Tag.ImageLength]
    across = tags.get(Tag.TileWidth, width)
    down = tags.get(Tag.TileLength, min(tags.get(Tag.RowsPerStrip, height), height))
    wanted = math.ceil(width / across) * math.ceil(height / down)
    wanted *= tags.get(Tag.SamplesPerPixel, 1) if tags.get(Tag.PlanarConfiguration, 1) == 2 else 1
    short = len(places) < wanted
    if tags.get(Tag.Compression, 1) in _FAX and Tag.TileWidth not in tags:
        for row, start, length in zip(range(0, height, down), places, lengths, strict=False):
            data = np.frombuffer(content[start : start + length], np.uint8)
            if tags.get(Tag.FillOrder, 1) == 2:
                data = np.packbits(np.unpackbits(data, bitorder="little"))
            bits = _END_MARKS.sub("", f"{int.from_bytes(data.tobytes(), 'big'):0{8 * len(data)}b}")
            start_of_line = _END_OF_LINE if tags[Tag.Compression] == 3 else ""
            # The decoder reads noise behind the data only if they end early.
            noises = (8 * (start_of_line + noise) for noise in _NOISES)
            one, other = (_decoded(bits + noise, width, min(down, height - row), tags) for noise in noises)
            short = short or one is None or one != other
    if short:
        raise InputError("ends before its last row; get an intact copy", label)


def _decoded(bits: str, width: int, rows: int, tags: dict[int, int]) -> bytes | None:
    """The pixels of a fax strip; None if it cannot be decoded."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2  # takes time to load

    data = np.packbits(np.frombuffer(bits.encode(), np.uint8) & 1).tobytes()
    directory, stream = ImageFileDirectory_v2(), io.BytesIO()
    strip = {Tag.ImageWidth: width, Tag.ImageLength: rows, Tag.BitsPerSample: 1, Tag.PhotometricInterpretation: 1}
    strip |= {Tag.StripOffsets: 0, Tag.RowsPerStrip: rows, Tag.StripByteCounts: len(data)}
    for tag, value in (strip | {tag: tags[tag] for tag in (Tag.Compression, Tag.T4Options) if tag in tags}).items():
        directory[tag] = value
    directory.save(stream)
    stream.write(data)
    try:
        with Image.open(stream, formats=("TIFF",)) as image:
            return image.tobytes()
    except (OSError, ValueError, SyntaxError):
        return None


@functools.cache
def silence() -> None:
    """Keep libtiff from printing to stderr what Pillow raises; where it is no library of its own, it may print."""
    # Found through Pillow's module, which is linked with it, whatever its name and place.
    handler = getattr(ctypes.CDLL(Image.core.__file__), "TIFFSetErrorHandler", None)
    if handler is not None:
        handler(None)
