"""The image formats that are read and written: a new one is a new row of `FORMATS`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from restore.buckets import path_of
from restore.errors import UsageError, shown


@dataclass(frozen=True)
class Format:
    """An image format, under Pillow's name for it.

    Attributes:
        suffixes: its file endings, in lower case.
        modes: the modes of Pillow that it keeps without loss, separated by blanks; a format without any is only read.
        keeps: what else of a picture it holds, by the keys of its `info`, separated by blanks.
        pages: the first bytes, after blanks, of files that hold pages, to restore one by one; empty for other formats.
        options: the arguments for Pillow when it saves one.
    """

    suffixes: tuple[str, ...]
    modes: str = ""
    keeps: str = ""
    pages: tuple[bytes, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


# Pillow accepts two wrong byte orders, and large files.
_TIFF = (b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+")

FORMATS = {
    "PNG": Format((".png",), "1 L LA P RGB RGBA I;16", "dpi icc_profile exif xmp chunks"),
    "TIFF": Format((".tif", ".tiff"), "1 L LA P RGB RGBA I;16", "dpi icc_profile exif xmp tags compression", _TIFF),
    "BMP": Format((".bmp",), "1 L P RGB", "dpi"),
    # `exact` keeps the levels under fully transparent pixels.
    "WEBP": Format((".webp",), "L LA RGB RGBA", "icc_profile exif xmp", options={"lossless": True, "exact": True}),
    "PPM": Format((".pgm", ".ppm", ".pbm", ".pnm"), "L RGB I;16"),
    "PDF": Format((".pdf",), "1 L RGB", "dpi icc_profile", pages=(b"%PDF-",)),
    "JPEG": Format((".jpg", ".jpeg", ".mpo")),
    "GIF": Format((".gif",)),
}
# What Pillow reads. It would pass page descriptions such as EPS to another program.
READ = tuple(name for name in FORMATS if name != "PDF")
# File endings of the images found in a folder. Files named one by one may have any.
IMAGE_SUFFIXES = frozenset(suffix for name in READ for suffix in FORMATS[name].suffixes)


def paged(content: bytes) -> str:
    """The format of a file that holds pages, TIFF or PDF, by its first bytes; empty for all others."""
    start = content[:1024].lstrip()
    return next((name for name, format in FORMATS.items() if format.pages and start.startswith(format.pages)), "")


def format_in(content: bytes) -> str:
    """The format of the content of a file that Pillow knows, or of a PDF; empty if there is none."""
    if kind := paged(content):
        return kind
    try:
        with Image.open(io.BytesIO(content), formats=READ) as image:
            return image.format or ""
    except (OSError, ValueError):
        return ""


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file to write, by its ending.

    Raises:
        UsageError: the ending is unknown, or its format would change pixels (JPEG).

    >>> format_of("digit.tif")
    'TIFF'
    """
    suffix = path_of(path).suffix.lower()
    for name, format in FORMATS.items():
        if suffix in format.suffixes and format.modes:
            return name
    fault = f"{shown(suffix)} is an unknown ending, or a format that changes pixels" if suffix else "has no file ending"
    raise UsageError(f"{fault}; choose .png, or end the name of a folder with /", path)
