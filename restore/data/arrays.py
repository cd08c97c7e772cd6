"""Read images from array files: .npy and .npz of numpy, and idx, the format of MNIST. Nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from restore.data.archives import readable, unpacked
from restore.data.dataset import VALUES_AT_ONCE, Images, Split, as_grey
from restore.errors import InputError, shown
from restore.images import DEFAULT_MAX_PIXELS, check_together

NPY, IDX = b"\x93NUMPY", b"\0\0\x08\x03"


def parse_npy(stream: IO[bytes], name: str, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Read the images of a .npy file: grey levels (N, H, W), and notes; see `as_grey`.

    Raises InputError for damage, other values or another shape, and too many pixels.
    """
    shape, in_columns, kind = _header(stream, name)
    if len(shape) != 3:
        raise InputError(f"has shape {shape}; a data set has shape (N, H, W)", name)
    as_grey(np.empty(0, kind), name)
    _check_size(shape, name, max_pixels)
    levels = np.empty(math.prod(shape), np.uint8)
    for first in range(0, len(levels), VALUES_AT_ONCE):
        wanted = levels[first : first + VALUES_AT_ONCE]
        part = np.frombuffer(stream.read(wanted.size * kind.itemsize), kind)
        if part.size < wanted.size:
            raise InputError("ends before its last value; get an intact copy", name)
        wanted[:] = part if kind == np.uint8 else as_grey(part, name)[0]
    images = levels.reshape(shape[::-1]).T if in_columns else levels.reshape(shape)
    return as_grey(images, name) if kind == np.uint8 else (images, ())


def _header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    if np.lib.format.read_magic(stream) != (1, 0):
        raise InputError("holds a table; save images as one array of numbers", name)
    return np.lib.format.read_array_header_1_0(stream)


def _check_size(shape: tuple[int, ...], name: str, max_pixels: int) -> None:
    # A factor of 0 hides no others.
    check_together(math.prod(max(1, size) for size in shape), name, max_pixels)


def holds_arrays(path: Path) -> bool:
    """True if a zip archive is a .npz file."""
    with readable(path), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(path: Path, split: Split, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Read the one array of images (N, H, W) in a .npz file, or the one with the split in its name."""
    with readable(path), zipfile.ZipFile(path) as archive:
        names = []
        for name in archive.namelist():
            with archive.open(name) as stream:
                names += [name] if len(_header(stream, name)[0]) == 3 else []
        names = [name for name in names if split in name] or names
        if len(names) != 1:
            listed = ", ".join(map(shown, names)) or "none"
            raise InputError(f"give one array of images (N, H, W); it holds {listed}", path)
        with archive.open(names[0]) as stream:
            return parse_npy(stream, f"{path}: {names[0]}", max_pixels)


def read_idx(path: Path, max_pixels: int = DEFAULT_MAX_PIXELS) -> Images:
    """Read the images of an idx file, compressed or not; shape (N, H, W), N may be 0."""
    with readable(path), unpacked(path) as stream:
        return parse_idx(stream, str(path), max_pixels)


def parse_idx(stream: IO[bytes], name: str, max_pixels: int) -> Images:
    """Read the images of an unpacked idx file; raises InputError for damage, padding, and too many pixels."""
    header = stream.read(16)
    if len(header) < 16 or not header.startswith(IDX):
        raise InputError("not an idx file of images, (N, H, W) in bytes; get the file again", name)
    shape = tuple(int(size) for size in np.frombuffer(header, dtype=">u4", offset=4))
    _check_size(shape, name, max_pixels)
    count = math.prod(shape)
    content = stream.read(count + 1)  # one byte more shows a padded file, and has gzip's checksum checked
    if len(content) != count:
        fault = "more" if len(content) > count else "fewer"
        raise InputError(f"holds {fault} bytes than its header promises ({count}); get the file again", name)
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
