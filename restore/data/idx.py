"""Read idx files, the format of MNIST: four bytes of type and rank, the sizes, then the values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO

import numpy as np

from restore.data.archives import readable, unpacked
from restore.data.dataset import Images
from restore.errors import InputError, shown
from restore.images import DEFAULT_MAX_PIXELS, check_together

IDX = b"\0\0\x08\x03"


def read_idx(path: Path, max_pixels: int = DEFAULT_MAX_PIXELS) -> Images:
    """Read the images of an idx file, compressed or not.

    Args:
        path: the file.
        max_pixels: the most pixels of one image, as in `restore.images.check_together`.

    Returns:
        Shape (N, H, W), uint8; N may be 0.

    Raises:
        InputError: if the file cannot be read, is damaged, truncated or padded, holds anything but grey images, or has
            too many pixels.
    """
    with readable(path), unpacked(path) as stream:
        return parse_idx(stream, str(path), max_pixels)


def parse_idx(stream: IO[bytes], name: str, max_pixels: int) -> Images:
    """Read the images of an unpacked idx file, as `read_idx` does."""
    header = stream.read(16)
    if len(header) < 16 or not header.startswith(IDX):
        raise InputError(f"{shown(name)}: not an idx file of images, (N, H, W) in bytes; get the file again")
    shape = [int(size) for size in np.frombuffer(header, dtype=">u4", offset=4)]
    # A factor of 0 hides no others.
    check_together(math.prod(max(1, size) for size in shape), name, max_pixels)
    count = math.prod(shape)
    content = stream.read(count + 1)  # one byte more shows a padded file, and has gzip's checksum checked
    if len(content) != count:
        fault = "more" if len(content) > count else "fewer"
        raise InputError(f"{shown(name)}: holds {fault} bytes than its header promises ({count}); get the file again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
