"""Check PNG files where Pillow does not: the checksums of the pixels, and that no row is missing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from restore.errors import InputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_CHECKED = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"fdAT")
# Samples of a pixel, by the colour type in the header.
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# The passes of an interlaced image (Adam7): first column and row, and steps between columns and rows.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
# Bytes that are unpacked at a time, only to be counted.
_AT_ONCE = 1 << 20


def check_sums(content: bytes, label: str) -> None:
    """Check the checksums of the chunks that hold pixels; Pillow may return altered pixels.

    Raises:
        InputError: naming the first chunk whose checksum is wrong.
    """
    view = memoryview(content)
    for kind, start, end in _chunks(content):
        found = int.from_bytes(view[end : end + 4], "big")
        if kind in _CHECKED and zlib.crc32(view[start - 4 : end]) != found:
            raise InputError(f"{label}: is damaged (wrong checksum of its {kind.decode()} chunk); get an intact copy")


def check_rows(content: bytes, frame: int, label: str) -> None:
    """Check that no row of a frame, or of those before it, is missing; Pillow leaves missing rows black.

    Args:
        content: the file; Pillow has read its header.
        frame: number of the frame, from 0; a picture outside an animation is the first.
        label: the file's name for messages.

    Raises:
        InputError: if rows are missing, or cannot be unpacked.
    """
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, 16)
    bits = depth * _SAMPLES[colour]
    # The picture in IDAT has the size in the header; the size of others is in the fcTL chunk before them.
    streams: list[list[memoryview]] = [[]]
    sizes = [(width, height)]
    following = (width, height)
    view = memoryview(content)
    for kind, start, end in _chunks(content):
        if kind == b"fcTL":
            following = struct.unpack_from(">II", content, start + 4)
        elif kind == b"IDAT":
            streams[0].append(view[start:end])
        elif kind == b"fdAT":
            if following != (0, 0):
                streams.append([])
                sizes.append(following)
                following = (0, 0)
            streams[-1].append(view[start + 4 : end])
    for parts, size in list(zip(streams, sizes, strict=True))[: frame + 1]:
        wanted = _length(*size, bits, interlaced=bool(interlaced))
        try:
            complete = _unpacks_to(parts, wanted)
        except zlib.error as fault:
            raise InputError(f"{label}: is damaged (its pixels cannot be unpacked); get an intact copy") from fault
        if not complete:
            raise InputError(f"{label}: ends before its last row; get an intact copy")


def has_16_bit_alpha(content: bytes) -> bool:
    """Whether a PNG has 16-bit grey and alpha, and `as_8_bit_colour` can relabel it."""
    # Animations blend their frames, which needs true colours.
    return content[24:26] == b"\x10\x04" and b"acTL" not in content[: content.find(b"IDAT")]


def as_8_bit_colour(content: bytes) -> bytes:
    """Relabel a PNG of 16-bit grey and alpha as one of 8-bit red, green, blue and alpha.

    Pillow would cut its levels to 8 bits. Pixels of both kinds have four bytes and are filtered byte by byte, so every
    byte survives under the other label.
    """
    header = content[12:24] + b"\x08\x06" + content[26:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


def _chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each chunk before IEND, and where its data start and end, possibly beyond the end of the file."""
    start = len(SIGNATURE)
    while start + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, start)
        if kind == b"IEND":
            return
        yield kind, start + 8, start + 8 + length
        start += 12 + length


def _length(width: int, height: int, bits: int, *, interlaced: bool) -> int:
    """The bytes of all rows, each with one more for its filter."""
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = ((-((left - width) // across), -((top - height) // down)) for left, top, across, down in passes)
    return sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)


def _unpacks_to(parts: list[memoryview], wanted: int) -> bool:
    """Whether a stream in parts unpacks to at least this many bytes; no more of it is unpacked."""
    unpacker = zlib.decompressobj()
    for part in parts:
        packed: bytes | memoryview = part
        while packed and wanted > 0:
            wanted -= len(unpacker.decompress(packed, _AT_ONCE))
            packed = unpacker.unconsumed_tail
        if wanted <= 0:
            return True
    # All input may have been taken in, but not all output given.
    while wanted > 0 and (more := unpacker.decompress(unpacker.unconsumed_tail, _AT_ONCE)):
        wanted -= len(more)
    return wanted <= 0
