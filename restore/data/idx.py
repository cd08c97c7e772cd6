"""Read idx files, the format of MNIST: four bytes of type and rank, the sizes, then the values."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images
from restore.errors import InputError, shown
from restore.images import DEFAULT_MAX_PIXELS, check_together

GZIP = b"\x1f\x8b"
UINT8 = b"\0\0\x08"

# Deflate cannot expand data by more than this factor, so a header that promises more is refused before memory is taken.
_EXPANSION = 1032
# How many bytes are unpacked at a time, so that a short file with a false header takes little memory.
_AT_ONCE = 1 << 20


def read_idx(path: Path, max_pixels: int = DEFAULT_MAX_PIXELS) -> Images:
    """Read the images of an idx file, gzipped or not.

    Args:
        path: the file.
        max_pixels: the most pixels of one image, as in `restore.images.check_together`.

    Returns:
        Shape (N, H, W), uint8; N may be 0.

    Raises:
        InputError: if the file cannot be read, is damaged, truncated or padded, holds anything but grey images, or has
            too many pixels.
    """
    return _read(path, 3, max_pixels)


# What an idx file holds, by its number of dimensions.
_CONTENT = {1: "labels (N)", 3: "images (N, H, W)"}


def _read(path: Path, rank: int, max_pixels: int) -> NDArray[np.uint8]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            limit = path.stat().st_size * (_EXPANSION if packed else 1)
            if not packed:
                return _parse(raw, path, limit, rank, max_pixels)
            with gzip.GzipFile(fileobj=raw) as unpacked:
                return _parse(unpacked, path, limit, rank, max_pixels)
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise InputError(f"{shown(path)}: the gzip data is damaged ({fault}); get the file again") from fault
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault


def _parse(stream: io.BufferedIOBase, path: Path, limit: int, rank: int, max_pixels: int) -> NDArray[np.uint8]:
    header = stream.read(4)
    if len(header) < 4 or header[:3] != UINT8:
        raise InputError(f"{shown(path)}: not an idx file of bytes (it must begin with 00 00 08)")
    if header[3] != rank:
        guess = _CONTENT.get(header[3], "").partition(" ")[0]
        hint = f" ({guess}?)" if guess else ""
        raise InputError(f"{shown(path)}: holds {header[3]}-dimensional data{hint}, not {_CONTENT[rank]}")
    sizes = stream.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise InputError(f"{shown(path)}: ends within its header; get the file again")
    shape = tuple(int(size) for size in np.frombuffer(sizes, dtype=">u4"))
    wanted = math.prod(shape)
    if wanted > limit:
        raise InputError(
            f"{shown(path)}: its header promises {wanted} bytes, more than the file can hold; get the file again"
        )
    check_together(wanted, str(path), max_pixels)
    values = np.empty(wanted, dtype=np.uint8)
    view = values.data
    found = 0
    while found < wanted and (count := stream.readinto(view[found : found + _AT_ONCE])):
        found += count
    # One byte more detects a padded file, and only reading to the end checks gzip's checksum.
    found += len(stream.read(1))
    if found != wanted:
        fault = "more" if found > wanted else "fewer"
        raise InputError(f"{shown(path)}: holds {fault} bytes than its header promises ({wanted}); get the file again")
    return values.reshape(shape)
