"""What Pillow does not check of a TIFF: how much it promises, before it is read, and strips that end too early."""

from __future__ import annotations

import ctypes
import functools
import io
import math
import re
import struct

import numpy as np
from PIL import Image
from PIL.ImageFile import ImageFile

from restore.errors import InputError

# The most pages of a file, entries of a page's directory, and strips or tiles of a page: Pillow takes about 300 bytes
# and 2 microseconds for each of the last.
MOST_PAGES = 1000
MOST_ENTRIES = 4096
MOST_STRIPS = 100_000

_WIDTH, _LENGTH, _TILE_WIDTH, _TILE_LENGTH, _ROWS, _PLANES, _SAMPLES = 256, 257, 322, 323, 278, 284, 277
_COMPRESSION, _FILL_ORDER, _FAX_OPTIONS, _FAX = 259, 266, 292, (3, 4)
_PLACES, _LENGTHS = (273, 324), (279, 325)
# Bytes of a value, by its type.
_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
# Two or more ends of lines are the end of fax data, to a decoder too.
_END_OF_LINE, _END_MARKS = "000000000001", re.compile("(0{11}11?){2,}0*$")
# A decoder reads these in different ways.
_NOISES = ("1" * 96, "001000111010" * 8)


def pages(content: bytes, label: str) -> list[int]:
    """The pixels of each page, or of its tile if that is larger; raises InputError if the file promises too much."""
    order = "<" if content[:2] == b"II" else ">"
    place, count, head = ("Q", "Q", "HHQ") if content[2:3] == b"+" else ("I", "H", "HHI")
    at, found = 8 if place == "Q" else 4, dict[int, int]()
    try:
        while (start := struct.unpack_from(order + place, content, at)[0]) and start not in found:
            (entries,) = struct.unpack_from(order + count, content, start)
            at, promised, sides = start + struct.calcsize(count), 0, dict[int, int]()
            if entries > MOST_ENTRIES or len(found) == MOST_PAGES:
                raise InputError(f"has more than {MOST_PAGES} pages, or is damaged; split it", label)
            for _ in range(entries):
                tag, kind, number = struct.unpack_from(order + head, content, at)
                at += struct.calcsize(order + head)
                if tag in _PLACES and number > MOST_STRIPS:
                    raise InputError(f"has more than {MOST_STRIPS} strips or tiles; save it anew as PNG", label)
                (sides[tag],) = struct.unpack_from(order + ("H" if kind == 3 else place), content, at)
                promised += number * _BYTES.get(kind, 1)
                at += struct.calcsize(place)
            if promised > 4 * len(content):
                raise InputError("is damaged (it promises more than it holds); get an intact copy", label)
            area, tile = ((_WIDTH, _LENGTH), (_TILE_WIDTH, _TILE_LENGTH))
            found[start] = max(math.prod(sides.get(side, 0) for side in each) for each in (area, tile))
    except (struct.error, OverflowError) as fault:
        raise InputError("is damaged (a page of it lies outside the file); get an intact copy", label) from fault
    return list(found.values())


def check_rows(image: ImageFile, content: bytes, label: str) -> None:
    """Refuse a page that lacks rows where Pillow and libtiff do not: strips are missing, or fax data end early."""
    tags = image.tag_v2  # type: ignore[attr-defined]
    places, lengths = (next((tags[tag] for tag in each if tag in tags), ()) for each in (_PLACES, _LENGTHS))
    width, height = tags[_WIDTH], tags[_LENGTH]
    across, down = tags.get(_TILE_WIDTH, width), tags.get(_TILE_LENGTH, min(tags.get(_ROWS, height), height))
    wanted = math.ceil(width / across) * math.ceil(height / down)
    wanted *= tags.get(_SAMPLES, 1) if tags.get(_PLANES, 1) == 2 else 1
    short = len(places) < wanted
    if tags.get(_COMPRESSION, 1) in _FAX and _TILE_WIDTH not in tags:
        for row, start, length in zip(range(0, height, down), places, lengths, strict=False):
            data = np.frombuffer(content[start : start + length], np.uint8)
            if tags.get(_FILL_ORDER, 1) == 2:
                data = np.packbits(np.unpackbits(data, bitorder="little"))
            bits = _END_MARKS.sub("", f"{int.from_bytes(data.tobytes(), 'big'):0{8 * len(data)}b}")
            start_of_line = _END_OF_LINE if tags[_COMPRESSION] == 3 else ""
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
    strip = {_WIDTH: width, _LENGTH: rows, 258: 1, 262: 1, 273: 0, _ROWS: rows, 279: len(data)}
    for tag, value in (strip | {tag: tags[tag] for tag in (_COMPRESSION, _FAX_OPTIONS) if tag in tags}).items():
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
