"""Reading idx files, the form MNIST comes in: four bytes of type and rank, the sizes, then the values."""

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

GZIP = b"\x1f\x8b"
UINT8 = b"\0\0\x08"

# Deflate cannot expand data by more than this, so a header that promises more than that is known to lie before anything
# is allocated for it.
_EXPANSION = 1032
_MAX_BYTES = 4 << 30


def read_idx(path: Path) -> Images:
    """The images of an idx file, gzipped or not.

    Returns:
        Shape (N, H, W), uint8; N may be 0.

    Raises:
        InputError: if the file cannot be read, is damaged, truncated or padded, or holds anything but grey images.
    """
    return _read(path, 3)


def read_idx_labels(path: Path) -> NDArray[np.uint8]:
    """The labels of an idx file, gzipped or not.

    Returns:
        Shape (N,), uint8; N may be 0.

    Raises:
        InputError: if the file cannot be read, is damaged, truncated or padded, or holds anything but labels.
    """
    return _read(path, 1)


# What an idx file of so many dimensions holds.
_CONTENT = {1: "labels (N)", 3: "images (N, H, W)"}


def _read(path: Path, rank: int) -> NDArray[np.uint8]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            limit = min(path.stat().st_size * (_EXPANSION if packed else 1), _MAX_BYTES)
            if not packed:
                return _parse(raw, path, limit, rank)
            with gzip.GzipFile(fileobj=raw) as unpacked:
                return _parse(unpacked, path, limit, rank)
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise InputError(f"{shown(path)}: the gzip data is damaged ({fault}); get the file again") from fault
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault


def _parse(stream: io.BufferedIOBase, path: Path, limit: int, rank: int) -> NDArray[np.uint8]:
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
    # One byte more than wanted tells a padded file, and reading to the end is what checks gzip's own checksum.
    values = stream.read(wanted + 1)
    if len(values) != wanted:
        fault = "more" if len(values) > wanted else "fewer"
        raise InputError(f"{shown(path)}: holds {fault} bytes than its header promises ({wanted}); get the file again")
    return np.frombuffer(values, dtype=np.uint8).reshape(shape).copy()
