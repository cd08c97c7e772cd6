"""Detect JPEG data that end too early: libjpeg fills what is missing with grey, without an error."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

# The most passes over an image that are decoded; a progressive one has about ten.
MAX_SCANS = 100

# Data that no encoder writes after its own: noise, drawn once, without the byte that begins a marker; and its inverse,
# as one of them may happen to decode to the decoder's filling.
_NOISE = bytes.fromhex("a7519e0d6cf238b4c9257b13e846d05a90ef3c61857a2ed41bb7680c4df35226")
NOISES = (_NOISE, bytes(255 - byte for byte in _NOISE))

_MARKER = re.compile(rb"\xff+([^\x00\xff])", re.DOTALL)
_START, _END, _SCAN = 0xD8, 0xD9, 0xDA
_RESTARTS = range(0xD0, 0xD8)
# Frames with Huffman coding, sequential and progressive; and with arithmetic coding, whose data may legally end early.
_FRAMES = (0xC0, 0xC1, 0xC2)
_ARITHMETIC = (0xC9, 0xCA)
_COEFFICIENTS = range(64)


def scans(content: bytes) -> int:
    """The number of scans of the first image in these bytes."""
    return sum(kind == _SCAN for kind, _, _ in _markers(content))


def lacks_scans(content: bytes) -> bool:
    """Whether the scans of the first image in these bytes leave out coefficients of a component, or bits of them."""
    components: bytes = b""
    # For each component, the coefficients whose last bit has come.
    known: dict[int, set[int]] = defaultdict(set)
    for kind, _, data in _markers(content):
        if kind in _FRAMES:
            # Depth, height, width, and three bytes for each component; the first of these is its name.
            components = content[data + 8 : data + 8 + 3 * content[data + 7]][::3]
        elif kind == _SCAN:
            # Two bytes for each component; then the first and last coefficient, and the bits before and now.
            count = content[data + 2]
            names = content[data + 3 : data + 3 + 2 * count : 2]
            first, last, bits = content[data + 3 + 2 * count : data + 6 + 2 * count]
            for name in names if bits & 15 == 0 else b"":
                known[name].update(range(first, last + 1))
    return any(not known[name].issuperset(_COEFFICIENTS) for name in components)


def padded(content: bytes, noise: bytes) -> bytes | None:
    """The first image in these bytes, with noise after the data of each scan and of each interval in it.

    A decoder reads the noise only where data are missing, so the pixels change if and only if data are missing. Returns
    None if this does not hold.
    """
    parts, last, restarts = [], 0, -1  # no scan has begun
    for kind, position, _ in _markers(content):
        if kind in _ARITHMETIC:
            return None
        if restarts >= 0:
            parts += [content[last:position], noise]
            if kind not in _RESTARTS:
                # For the interval after the last one, which begins with the next number of mark.
                parts += [bytes([0xFF, _RESTARTS[restarts % len(_RESTARTS)]]), noise]
            last = position
        restarts = 0 if kind == _SCAN else restarts + 1 if restarts >= 0 and kind in _RESTARTS else -1
    return b"".join([*parts, content[last:]])


def _markers(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind and place of each marker up to the end marker, and the place after it; other data are skipped."""
    position = 0
    while (found := _MARKER.search(content, position)) is not None:
        kind = found[1][0]
        position = found.end()
        yield kind, found.start(), position
        if kind == _END:
            return
        if kind != _START and kind not in _RESTARTS:
            position += int.from_bytes(content[position : position + 2], "big")
