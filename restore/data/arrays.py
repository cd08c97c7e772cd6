"""Read images from arrays that numpy saved, .npy and .npz. Nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from restore.data.archives import readable
from restore.data.dataset import Images, Split, as_grey
from restore.errors import InputError, shown
from restore.images import check_together

NPY = b"\x93NUMPY"

# How many values are converted together, so that only their grey levels take memory.
_AT_ONCE = 1 << 20


def parse_npy(stream: IO[bytes], name: str, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Read the images of a .npy file.

    Args:
        stream: the file.
        name: its name for messages.
        max_pixels: the most pixels of one image, as in `restore.images.check_together`.

    Returns:
        Grey levels (N, H, W), and notes; see `as_grey`.

    Raises:
        InputError: if it is damaged or truncated, holds other values than `as_grey` takes or another shape than
            (N, H, W), or has too many pixels.
    """
    shape, in_columns, kind = _header(stream, name)
    if len(shape) != 3:
        raise InputError(f"{shown(name)}: has shape {shape}; a data set has shape (N, H, W)")
    as_grey(np.empty(0, kind), name)
    # A factor of 0 hides no others.
    check_together(math.prod(max(1, size) for size in shape), name, max_pixels)
    levels = np.empty(math.prod(shape), np.uint8)
    for first in range(0, len(levels), _AT_ONCE):
        wanted = levels[first : first + _AT_ONCE]
        part = np.frombuffer(stream.read(wanted.size * kind.itemsize), kind)
        if part.size < wanted.size:
            raise InputError(f"{shown(name)}: ends before its last value; get an intact copy")
        wanted[:] = part if kind == np.uint8 else as_grey(part, name)[0]
    images = levels.reshape(shape[::-1]).T if in_columns else levels.reshape(shape)
    return as_grey(images, name) if kind == np.uint8 else (images, ())


def _header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    if np.lib.format.read_magic(stream) != (1, 0):
        raise InputError(f"{shown(name)}: holds a table; save images as one array of numbers")
    return np.lib.format.read_array_header_1_0(stream)


def holds_arrays(path: Path) -> bool:
    """True if a zip archive is a .npz file."""
    with readable(path), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(path: Path, split: Split, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Read the one array of images (N, H, W) in a .npz file, or the one with the split in its name.

    Raises:
        InputError: as `parse_npy`, and if there is no such array, or more than one.
    """
    with readable(path), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if _rank(archive, name) == 3]
        names = [name for name in names if split in name] or names
        if len(names) != 1:
            found = ", ".join(map(shown, names)) or "none"
            raise InputError(f"{shown(path)}: give one array of images (N, H, W); it holds {found}")
        with archive.open(names[0]) as stream:
            return parse_npy(stream, f"{path}: {names[0]}", max_pixels)


def _rank(archive: zipfile.ZipFile, name: str) -> int:
    with archive.open(name) as stream:
        return len(_header(stream, name)[0])
