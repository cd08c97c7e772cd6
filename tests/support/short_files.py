"""TIFF files written by hand: with fewer data than they promise, or with a promise beyond all measure."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from PIL import Image


def directory(tags: dict[int, int | Sequence[int]], start: int, following: int = 0) -> bytes:
    """A directory of a little-endian TIFF that begins at `start` in the file, with its arrays after it."""
    entries, arrays = b"", b""
    end = start + 2 + 12 * len(tags) + 4
    for tag, value in sorted(tags.items()):
        values = [value] if isinstance(value, int) else list(value)
        packed = struct.pack(f"<{len(values)}I", *values)
        if len(values) > 1:
            arrays += packed
            packed = struct.pack("<I", end + len(arrays) - len(packed))
        entries += struct.pack("<HHI", tag, 4, len(values)) + packed
    return struct.pack("<H", len(tags)) + entries + struct.pack("<I", following) + arrays


def tiff(
    width: int, height: int, segments: Sequence[bytes], *, compression: int = 1, bits: int = 8, **more: int
) -> bytes:
    """A grey TIFF of strips, or of tiles if their size is given; `rows` of a strip, `tile` a side, `photo`metric."""
    places, lengths = (324, 325) if "tile" in more else (273, 279)
    shape = {322: more["tile"], 323: more["tile"]} if "tile" in more else {278: more.get("rows", height)}
    tags: dict[int, int | Sequence[int]] = {
        256: width,
        257: height,
        258: bits,
        259: compression,
        262: more.get("photo", 1),
        277: 1,
        **shape,
        places: [0] * len(segments),
        lengths: [len(segment) for segment in segments],
    }
    start = 8 + len(directory(tags, 8))
    tags[places] = list(itertools.accumulate(map(len, segments[:-1]), initial=start))
    return struct.pack("<2sHI", b"II", 42, 8) + directory(tags, 8) + b"".join(segments)


def huge_tile(compression: int = 8) -> bytes:
    """A TIFF of 12x10 pixels, 200 bytes long, whose only tile has 46,000 x 46,000."""
    return tiff(12, 10, [zlib.compress(bytes(99))], compression=compression, tile=46_000)


def many_pages(count: int) -> bytes:
    """A TIFF of so many pages of one pixel, which they share."""
    tags: dict[int, int | Sequence[int]] = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 4, 277: 1, 278: 1, 279: 1}
    page = directory(tags, 0)[:-4]
    following = [8 + (len(page) + 4) * number for number in range(1, count)]
    pages = b"".join(page + struct.pack("<I", start) for start in (*following, 0))
    return struct.pack("<2sHI", b"II", 42, 8) + pages


def many_strips(count: int) -> bytes:
    """A TIFF of one column, each pixel of which is a strip, in a file of eight bytes a strip."""
    return tiff(1, count, [b"x"] * count, rows=1)


def many_tags(count: int) -> bytes:
    """A TIFF whose tags all name the same 100,000 bytes."""
    head = struct.pack("<2sHIH", b"II", 42, 8, count)
    return head + b"".join(struct.pack("<HHII", 40_000 + tag, 1, 100_000, 8) for tag in range(count)) + bytes(70_000)


def fax(image: np.ndarray, compression: str) -> bytes:
    """The only strip of black-and-white pixels (H, W) as libtiff compresses them."""
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "TIFF", compression=compression, tiffinfo={278: len(image)})
    with Image.open(stream) as opened:
        (start,), (size,) = (opened.tag_v2[tag] for tag in (273, 279))  # type: ignore[attr-defined]
    return stream.getvalue()[start : start + size]
