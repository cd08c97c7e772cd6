"""Checks of a TIFF that Pillow lacks: the work it promises, before it is read, and strips that end too early."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_BYTES = dict.fromkeys((3, 8), 2)
_BYTES |= dict.fromkeys((4, 9, 11, 13), 4)
_BYTES |= dict.fromkeys((5, 10, 12, 16, 17, 18), 8)
# Directories within a directory, by tag, and those within them: EXIF, what it says of other readers, and GPS.
_WITHIN = {34665: (40965,), 34853: (), 40965: ()}
# What describes how pixels are stored, or is derived from them; orientation, profile and XMP are kept by other means.
_LAYOUT = {*range(256, 260), *range(262, 267), 273, 274, *range(277, 285)}
_LAYOUT |= {*range(288, 294), 296, 301, 317, *range(320, 329), 330}
_LAYOUT |= {*range(332, 335), *range(336, 343), 347, *range(512, 533), 700, 34675}
# Tags that EXIF defines outside of its own directory; the profile gives the colour space.
_OF_EXIF = {270, 271, 272, 305, 306, 315, 318, 319, 33432, 34665, 34853, *range(40091, 40096)}
# The end of a line of a fax, alone or with a bit that says how the next one is coded.
_END_OF_LINE = "000000000001"
_ENDS_OF_LINES = (_END_OF_LINE, f"{_END_OF_LINE}1")
# A decoder reads these in different ways.
_NOISES = ("1" * 96, "001000111010" * 8)


# A directory: by tag the type of its values, and their bytes, little-endian, or a directory within it.
Tags = dict[int, tuple[int, Any]]


def _form(content: bytes) -> tuple[str, str, str, str]:
    """The formats, as in `struct`, of a file's byte order, offsets, number of entries and head of an entry."""
    order = "<" if content[:2] == b"II" else ">"
    return (order, "Q", "Q", "HHQ") if content[2:3] == b"+" else (order, "I", "H", "HHI")


# Tag, type, number of values, and place of these or of their offset.
Entry = tuple[int, int, int, int]


def _entries(content: bytes, start: int) -> tuple[list[Entry], int]:
    """The entries of a page, and the place of the next one's offset."""
    order, pointer, count, head = _form(content)
    (number,) = struct.unpack_from(order + count, content, start)
    if number > MOST_ENTRIES:
        raise OverflowError
    at = start + struct.calcsize(count)
    size = struct.calcsize(order + head)
    places = [at + index * (size + struct.calcsize(pointer)) for index in range(number + 1)]
    entries = [(*struct.unpack_from(order + head, content, at), at + size) for at in places[:-1]]
    return entries, places[-1]


def pages(content: bytes, label: str) -> list[int]:
    """The pixels of each page, or of its tile if that is larger; raises InputError if the file promises too much."""
    order, pointer, *_, head = _form(content)
    at = struct.calcsize(pointer)
    sizes = dict[int, int]()
    listed = 0
    try:
        while (start := struct.unpack_from(order + pointer, content, at)[0]) and start not in sizes:
            if len(sizes) == MOST_PAGES:
                raise InputError(f"has more than {MOST_PAGES} pages, or is damaged; split it", label)
            entries, at = _entries(content, start)
            listed += struct.calcsize(order + head + pointer) * len(entries)
            # Directories, too, may lie on the same bytes.
            if listed > len(content) or _promised(entries, label) > 4 * len(content):
                raise InputError("is damaged (it promises more than it holds); get an intact copy", label)
            sizes[start] = _area(content, entries, order, pointer)
    except (struct.error, OverflowError) as fault:
        raise InputError("is damaged (a page of it lies outside the file); get an intact copy", label) from fault
    return list(sizes.values())


def _promised(entries: Sequence[Entry], label: str) -> int:
    """The bytes of the values of a page; raises InputError for too many strips."""
    for tag, _, number, _ in entries:
        if tag in _PLACES and number > MOST_STRIPS:
            raise InputError(f"has more than {MOST_STRIPS} strips or tiles; save it anew as PNG", label)
    return sum(number * _BYTES.get(kind, 1) for _, kind, number, _ in entries)


def _area(content: bytes, entries: Sequence[Entry], order: str, pointer: str) -> int:
    """The pixels of a page, or of its tile if that is larger."""
    sides = {
        tag: struct.unpack_from(order + ("H" if kind == 3 else pointer), content, place)[0]
        for tag, kind, _, place in entries
    }
    pairs = ((Tag.ImageWidth, Tag.ImageLength), (Tag.TileWidth, Tag.TileLength))
    return max(sides.get(width, 0) * sides.get(height, 0) for width, height in pairs)


def tags_of(content: bytes, page: int = 0) -> Tags:
    """The tags of a page, or of EXIF, which is built like a TIFF; what lies outside of the content is left out."""
    order, pointer, *_ = _form(content)
    at = struct.calcsize(pointer)
    with contextlib.suppress(struct.error, OverflowError):
        for _ in range(page + 1):
            (start,) = struct.unpack_from(order + pointer, content, at)
            _, at = _entries(content, start)
        return _tags(content, start, (34665, 34853))
    return {}


def orientation(tags: Tags) -> int:
    """How the picture is turned, 1 to 8 as in EXIF; 0 if they do not say."""
    _, value = tags.get(Tag.Orientation, (0, b""))
    turned = int.from_bytes(value, "little") if isinstance(value, bytes) else 0
    return turned if turned in range(1, 9) else 0


def kept(tags: Tags, *, exif: bool = False) -> tuple[Tags, Tags]:
    """Tags without those of the layout of pixels: those that EXIF has too, all if these are its own, and the others."""
    both = Tags(), Tags()
    for tag, value in tags.items():
        if tag not in _LAYOUT:
            both[not exif and tag not in _OF_EXIF][tag] = value
    return both


def _tags(content: bytes, start: int, within: Sequence[int]) -> Tags:
    """Read a directory, and the directories within it under some of its tags."""
    order, pointer, *_ = _form(content)
    tags = Tags()
    room = 4 * len(content)
    for tag, kind, number, at in _entries(content, start)[0]:
        unit = 4 if kind in (5, 10) else _BYTES.get(kind, 1)
        size = number * _BYTES.get(kind, 1)
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


def changed(tags: Tags, change: Callable[[bytes], bytes]) -> Tags:
    """The same tags with the bytes of each, also in directories within it, changed to others of their length."""
    return {
        tag: (kind, change(value) if isinstance(value, bytes) else changed(value, change))
        for tag, (kind, value) in tags.items()
    }


def exif(tags: Tags) -> bytes:
    """The content of EXIF with these tags."""
    return b"Exif\0\0II*\0\x08\0\0\0" + _directory(tags, 8)


def bound(contents: Iterable[bytes], more: Tags | None = None) -> bytes:
    """One file of TIFFs with one page each, as Pillow writes them, each page with some more tags."""
    book = bytearray(b"II*\0\0\0\0\0")
    link = 4
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
    rows = struct.pack("<H", len(tags))
    values = b""
    first = base + 2 + 12 * len(tags) + 4
    for tag, (kind, value) in sorted(tags.items()):
        at = first + len(values)
        data = value if isinstance(value, bytes) else _directory(value, at)
        number = 1 if data is not value else len(data) // _BYTES.get(kind, 1)
        inside = data is value and len(data) <= 4
        rows += struct.pack("<HHI", tag, kind, number) + (data.ljust(4, b"\0") if inside else struct.pack("<I", at))
        values += b"" if inside else data + bytes(len(data) % 2)
    return rows + bytes(4) + values


def check_rows(image: ImageFile, content: bytes, label: str) -> None:
    """Refuse a page whose strips share their bytes, or that lacks rows where Pillow and libtiff do not.

    Strips are missing, or fax data end early. The work is a small multiple of the bytes and of the pixels.
    """
    tags = image.tag_v2  # type: ignore[attr-defined]
    places, lengths = (next((tags[tag] for tag in group if tag in tags), ()) for group in (_PLACES, _LENGTHS))
    width, height = tags[Tag.ImageWidth], tags[Tag.ImageLength]
    across = tags.get(Tag.TileWidth, width)
    down = tags.get(Tag.TileLength, min(tags.get(Tag.RowsPerStrip, height), height))
    wanted = math.ceil(width / across) * math.ceil(height / down)
    wanted *= tags.get(Tag.SamplesPerPixel, 1) if tags.get(Tag.PlanarConfiguration, 1) == 2 else 1
    # Empty tiles may share what they hold, which is shorter than their pixels.
    if sum(lengths) > 2 * len(content) + 16 * width * height:
        raise InputError("is damaged (its strips lie on the same bytes); get an intact copy", label)
    if len(places) < wanted or (
        tags.get(Tag.Compression, 1) in _FAX and Tag.TileWidth not in tags and _fax_ends_early(tags, content)
    ):
        raise InputError("ends before its last row; get an intact copy", label)


def _fax_ends_early(tags: Mapping[int, Any], content: bytes) -> bool:
    """True if the data of a strip of a fax end before its rows, which libtiff then makes up in silence.

    A decoder reads noise behind the data only if they end early.
    """
    strips = list[str]()
    for start, length in zip(tags[Tag.StripOffsets], tags[Tag.StripByteCounts], strict=False):
        data = np.frombuffer(content[start : start + length], np.uint8)
        if tags.get(Tag.FillOrder, 1) == 2:
            data = np.packbits(np.unpackbits(data, bitorder="little"))
        strips.append(_without_end(f"{int.from_bytes(data.tobytes(), 'big'):0{8 * len(data)}b}"))
    start_of_line = _END_OF_LINE if tags[Tag.Compression] == 3 else ""
    one, other = (_decoded([bits + 8 * (start_of_line + noise) for bits in strips], tags) for noise in _NOISES)
    return one is None or one != other


def _without_end(bits: str) -> str:
    """Fax data without what marks their end, two or more ends of lines, and the zeros behind them."""
    end = len(bits.rstrip("0"))
    marks = 0
    while mark := next((mark for mark in _ENDS_OF_LINES if bits.endswith(mark, 0, end)), ""):
        end, marks = end - len(mark), marks + 1
    return bits[:end] if marks > 1 else bits


def _decoded(strips: Sequence[str], tags: Mapping[int, Any]) -> bytes | None:
    """The pixels of a fax with other bits in its strips; None if it cannot be decoded."""
    parts = [np.packbits(np.frombuffer(bits.encode(), np.uint8) & 1).tobytes() for bits in strips]
    lengths = np.array([len(part) for part in parts], "<u4")
    height = tags[Tag.ImageLength]
    numbers = {Tag.ImageWidth: tags[Tag.ImageWidth], Tag.ImageLength: height, Tag.BitsPerSample: 1}
    numbers |= {Tag.Compression: tags[Tag.Compression], Tag.PhotometricInterpretation: 1, Tag.SamplesPerPixel: 1}
    numbers |= {Tag.RowsPerStrip: min(tags.get(Tag.RowsPerStrip, height), height)}
    numbers |= {Tag.T4Options: tags[Tag.T4Options]} if Tag.T4Options in tags else {}
    directory: Tags = {tag: (4, struct.pack("<I", number)) for tag, number in numbers.items()}
    starts = 8 + np.cumsum(lengths, dtype="<u4") - lengths
    directory |= {Tag.StripOffsets: (4, starts.tobytes()), Tag.StripByteCounts: (4, lengths.tobytes())}
    data = b"".join(parts)
    content = struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + _directory(directory, 8 + len(data))
    try:
        with Image.open(io.BytesIO(content), formats=("TIFF",)) as image:
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
