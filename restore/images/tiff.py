"""Check TIFF files where Pillow and libtiff do not: the number of pages, and that no row of a page is missing."""

from __future__ import annotations

import contextlib
import ctypes
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from PIL.ImageFile import ImageFile

from restore.errors import InputError
from restore.images import jpeg

_WIDTH, _LENGTH, _COMPRESSION, _FILL_ORDER, _SAMPLES, _ROWS, _PLANES = 256, 257, 259, 266, 277, 278, 284
_TILE_WIDTH, _TILE_LENGTH = 322, 323
# Tags of the places and lengths of strips, and of tiles.
_STRIPS, _TILES = (273, 279), (324, 325)
# Compressions where libtiff accepts data that end too early: three fax codes, and JPEG.
_FAX, _LINEWISE, _JPEG = (2, 3, 4), 3, 7
# The mark at the end of a block, after which a fax decoder stops: twice this line.
_END_OF_LINE, _LINE_BITS = 0b000000000001, 12
# In the code that marks lines, each line has to begin with such a mark.
_LINE_START = b"\0\1"
# To a fax decoder: changes of colour at the same places as in the line before.
_ONES = b"\xff" * 32
# The types of whole numbers, and their formats in `struct`.
_WHOLE = {3: "H", 4: "I", 16: "Q"}
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True)
class _Layout:
    """How a TIFF, little- or big-endian, of 32 or 64 bits, writes numbers; formats as in `struct`.

    Attributes:
        order: byte order.
        place: format of a place in the file, and of a length.
        count: format of the number of entries in a directory.
        entry: format of tag, type and count of an entry; a value or its place follows.
        first: where the place of the first directory is.
        long: the type of values that are places.
    """

    order: str
    place: str
    count: str
    entry: str
    first: int
    long: int

    @property
    def entry_size(self) -> int:
        return struct.calcsize(self.order + self.entry + self.place)

    def read(self, format: str, content: bytes, position: int) -> tuple[Any, ...]:
        return struct.unpack_from(self.order + format, content, position)

    def write(self, format: str, *values: int) -> bytes:
        return struct.pack(self.order + format, *values)


def is_tiff(content: bytes) -> bool:
    """Whether Pillow takes this for a TIFF; it accepts two wrong byte orders."""
    return content[:4] in (b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+")


def pages(content: bytes, label: str) -> list[int]:
    """Find the directory of each page.

    Pillow's own count takes time that grows with the square of the number of pages.

    Raises:
        InputError: if a directory lies outside the file.
    """
    layout = _layout(content)
    found: dict[int, None] = {}
    try:
        (position,) = layout.read(layout.place, content, layout.first)
        while position and position not in found:
            found[position] = None
            (position,) = layout.read(layout.place, content, _end_of(content, position, layout))
    except (struct.error, OverflowError) as fault:
        raise InputError(f"{label}: is damaged (a page of it lies outside the file); get an intact copy") from fault
    return list(found)


def areas(content: bytes, pages: Sequence[int]) -> list[int]:
    """The number of pixels of each of the pages whose directories `pages` has found; 0 where that is not said."""
    layout = _layout(content)
    entry = np.dtype([("tag", f"{layout.order}u2"), ("rest", f"V{layout.entry_size - 2}")])
    found = []
    for page in pages:
        (count,) = layout.read(layout.count, content, page)
        start = page + struct.calcsize(layout.order + layout.count)
        tags = np.frombuffer(content, entry, count, start)["tag"]
        sides = [0, 0]
        for side, tag in enumerate((_WIDTH, _LENGTH)):
            for place in np.flatnonzero(tags == tag)[-1:]:
                position = start + int(place) * layout.entry_size
                _, kind, _ = layout.read(layout.entry, content, position)
                value = position + struct.calcsize(layout.order + layout.entry)
                (sides[side],) = layout.read(_WHOLE.get(kind, "H"), content, value)
        found.append(math.prod(sides))
    return found


def beginning_with(content: bytes, page: int) -> bytes:
    """The same file with the page at this directory as its first."""
    layout = _layout(content)
    start = layout.write(layout.place, page)
    return content[: layout.first] + start + content[layout.first + len(start) :]


def segment_pixels(image: ImageFile) -> int:
    """The pixels of a strip or tile, which libtiff holds in memory at once."""
    width, length = _segment(_tags(image))
    return width * length


def check_segments(image: ImageFile, label: str) -> None:
    """Check that the image has all its strips or tiles, and that none is empty.

    Raises:
        InputError: if some are missing; Pillow would leave them black.
    """
    tags = _tags(image)
    width, length = _segment(tags)
    wanted = math.ceil(_number(tags, _WIDTH) / width) * math.ceil(_number(tags, _LENGTH) / length)
    if tags.get(_PLANES, 1) == 2:
        wanted *= _number(tags, _SAMPLES, 1)
    for tag in _TILES if _TILES[0] in tags else _STRIPS:
        if tag in tags and (len(tags[tag]) < wanted or not all(tags[tag][:wanted])):
            raise InputError(f"{label}: lacks some of its rows; get an intact copy")


def padded(content: bytes, image: ImageFile) -> list[bytes]:
    """The first page alone, with several kinds of noise after the data of its strips or tiles.

    libtiff reads the noise only where data are missing, so the pixels change, or fail to decode, if and only if data
    are missing. For compressions where libtiff detects this itself the list is empty.
    """
    tags = _tags(image)
    compression = tags.get(_COMPRESSION, 1)
    places, lengths = _TILES if _TILES[0] in tags else _STRIPS
    if lengths not in tags:
        return []
    segments = [content[start : start + size] for start, size in zip(tags[places], tags[lengths], strict=False)]
    if compression == _JPEG:
        made = [[jpeg.padded(data, noise) for data in segments] for noise in jpeg.NOISES]
    elif compression in _FAX:
        mirrored = tags.get(_FILL_ORDER, 1) == 2
        starts = (b"", _LINE_START) if compression == _LINEWISE else (b"",)
        noises = [start + noise for start in starts for noise in (*jpeg.NOISES, _ONES)]
        made = [[_padded_fax(data, noise, mirrored) for data in segments] for noise in noises]
    else:
        return []
    return [_with_segments(content, {places, lengths}, several) for several in made if None not in several]


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Keep libtiff from printing to stderr; Pillow raises its errors.

    Its settings belong to the whole process, so only one thread at a time may use this. If libtiff is not a separate
    library, nothing changes.
    """
    # Found through Pillow's own module, which is linked with it, whatever its name and place.
    handler = getattr(ctypes.CDLL(Image.core.__file__), "TIFFSetErrorHandler", None)
    if handler is None:
        yield
        return
    handler.restype, handler.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    before = handler(None)
    try:
        yield
    finally:
        handler(before)


def _tags(image: ImageFile) -> Any:
    """The tags of the image's page, by number; their types are the file's."""
    return image.tag_v2  # type: ignore[attr-defined]


def _number(tags: Any, tag: int, default: int | None = None) -> int:
    value = tags[tag] if default is None else tags.get(tag, default)
    if not isinstance(value, int):
        raise ValueError(f"tag {tag} is not a whole number")
    return value


def _segment(tags: Any) -> tuple[int, int]:
    """Width and length of a strip or tile."""
    if _TILES[0] in tags:
        return _number(tags, _TILE_WIDTH), _number(tags, _TILE_LENGTH)
    length = _number(tags, _LENGTH)
    return _number(tags, _WIDTH), min(_number(tags, _ROWS, length), length)


def _layout(content: bytes) -> _Layout:
    order = "<" if content[:2] == b"II" else ">"
    # Recognises a BigTIFF as Pillow does, which reads only little-endian ones.
    return _Layout(order, "Q", "Q", "HHQ", 8, 16) if content[2:3] == b"+" else _Layout(order, "I", "H", "HHI", 4, 4)


def _end_of(content: bytes, page: int, layout: _Layout) -> int:
    """Where a directory ends and the place of the next one is written."""
    (count,) = layout.read(layout.count, content, page)
    return page + int(struct.calcsize(layout.order + layout.count)) + count * layout.entry_size


def _with_segments(content: bytes, replaced: set[int], segments: list[Any]) -> bytes:
    """A file whose first and only page has these strips or tiles; all else stays where it is."""
    layout = _layout(content)
    (page,) = layout.read(layout.place, content, layout.first)
    parts = [content, *segments]
    starts = [len(content)]
    for segment in segments:
        starts.append(starts[-1] + len(segment))
    *starts, end = starts
    values = {min(replaced): starts, max(replaced): [len(segment) for segment in segments]}
    directory = bytearray(content[page : _end_of(content, page, layout)])
    for position in range(struct.calcsize(layout.order + layout.count), len(directory), layout.entry_size):
        (tag,) = layout.read("H", bytes(directory), position)
        if tag not in values:
            continue
        listed = layout.write(f"{len(segments)}{layout.place}", *values[tag])
        entry = layout.write(layout.entry, tag, layout.long, len(segments))
        if len(segments) == 1:
            entry += listed
        else:
            entry += layout.write(layout.place, end)
            parts.append(listed)
            end += len(listed)
        directory[position : position + layout.entry_size] = entry
    parts += [bytes(directory), bytes(struct.calcsize(layout.order + layout.place))]
    return beginning_with(b"".join(parts), end)


def _padded_fax(data: bytes, noise: bytes, mirrored: bool) -> bytes:
    """The data of a strip followed by noise, which replaces the end mark if there is one."""
    upright = data.translate(_MIRRORED) if mirrored else data
    # The end of a strip, up to its last bit that is set, as one number.
    used = upright.rstrip(b"\0")
    tail = int.from_bytes(used[-64:], "big")
    zeros = (tail & -tail).bit_length() - 1 if tail else 0
    tail, bits = tail >> zeros, 8 * len(used[-64:]) - zeros
    marked = False
    while tail & ((1 << _LINE_BITS) - 1) == _END_OF_LINE:
        tail, bits, marked = tail >> _LINE_BITS, bits - _LINE_BITS, True
    if marked:
        # Filled up to whole bytes with the first bits of the noise.
        spare = -bits % 8
        tail = (tail << spare) | (noise[-1] & ((1 << spare) - 1))
        upright = used[:-64] + tail.to_bytes((bits + spare) // 8, "big")
    result = upright + noise
    return result.translate(_MIRRORED) if mirrored else result
