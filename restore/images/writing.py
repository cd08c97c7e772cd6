"""Write a restored image at the depth of its source, in formats that keep every level."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from restore.errors import OutputError, UsageError, shown
from restore.images.picture import Picture

# Only formats that keep every level. PPM is written as a grey map (.pgm).
_FORMAT_OF_SUFFIX = {
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".webp": "WEBP",
    ".pgm": "PPM",
}
_LOSSY_SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".avif", ".heic"}

# What each format can hold: pairs of the level of white, and whether with alpha.
_CAPACITY = {
    "PNG": {(255, False), (255, True), (65535, False), (65535, True)},
    "TIFF": {(255, False), (255, True), (65535, False)},
    "BMP": {(255, False)},
    "WEBP": {(255, False), (255, True)},
    "PPM": {(255, False), (65535, False)},
}

# Pixels that are turned into levels together, as this takes several times their memory.
TOGETHER = 2**20

# `exact` keeps the grey levels under fully transparent pixels.
_OPTIONS: dict[str, dict[str, bool]] = {"WEBP": {"lossless": True, "exact": True}}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file by its ending: PNG, TIFF, BMP, WEBP (lossless) or PPM.

    Raises:
        UsageError: the ending is unknown, or its format would change pixels (JPEG).
    """
    suffix = Path(path).suffix.lower()
    if suffix in _FORMAT_OF_SUFFIX:
        return _FORMAT_OF_SUFFIX[suffix]
    if suffix in _LOSSY_SUFFIXES:
        fault = f"{suffix} files do not keep every pixel exactly"
    else:
        fault = f"{shown(suffix)} is not a file ending known for writing" if suffix else "has no file ending"
    raise UsageError(f"{shown(path)}: {fault}; choose .png")


def check_format(picture: Picture, format: str, *, name: str) -> None:
    """Check that `format` can hold the depth and the alpha of `picture`; raises UsageError if it cannot."""
    if (picture.white, picture.alpha is not None) not in _CAPACITY.get(format, set()):
        depth = "16-bit" if picture.white > 255 else "8-bit"
        content = f"{depth} grey levels" if picture.alpha is None else f"{depth} grey levels with transparency"
        raise UsageError(f"{shown(name)}: {format} cannot hold {content}; choose .png")


def to_levels(
    picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None, *, name: str = "the restored image"
) -> np.ndarray:
    """Bring restored grey values back to the integer levels of their picture.

    Args:
        picture: the picture as it was read.
        restored: (H, W), floats in [0, 1]; values outside by a rounding error are clipped.
        hidden: (H, W), bool; if given, all other pixels are copied from `picture`, bit for bit.
        name: the result's name for messages.

    Returns:
        (H, W), in the type of `picture.levels`, each the nearest level.

    Raises:
        OutputError: `restored` holds NaN or infinite values.
        ValueError: the shapes differ.
    """
    for array in (restored, hidden):
        if array is not None and array.shape != picture.levels.shape:
            raise ValueError(f"shape {array.shape} is not {picture.levels.shape}, the shape of the picture")
    levels = picture.levels.copy()
    rows = max(1, TOGETHER // max(1, levels.shape[1]))
    for part in (slice(first, first + rows) for first in range(0, len(levels), rows)):
        if not np.isfinite(restored[part]).all():
            raise OutputError(
                f"{shown(name)}: holds NaN or infinite values and is not saved; try more damping or another model"
            )
        nearest = np.rint(np.clip(restored[part], 0, 1) * np.float64(picture.white))
        np.copyto(levels[part], nearest, casting="unsafe", where=True if hidden is None else hidden[part])
    return levels


def encode(
    picture: Picture,
    restored: np.ndarray,
    *,
    format: str,
    hidden: np.ndarray | None = None,
    name: str = "the restored image",
) -> bytes:
    """Make the content of an image file: the restored levels at the depth of `picture`, with its alpha.

    Args:
        picture, restored, hidden, name: as in `to_levels`.
        format: a name from `format_of`.

    Raises:
        UsageError: `format` cannot hold the depth or the alpha of `picture`.
        OutputError: `restored` holds NaN or infinite values, or the image is too large for `format`.
        ValueError: the shapes differ.
    """
    check_format(picture, format, name=name)
    levels = to_levels(picture, restored, hidden, name=name)
    if picture.alpha is not None and picture.white > 255:
        return _png_with_16_bit_alpha(levels, picture.alpha)
    image = Image.fromarray(levels if picture.alpha is None else np.stack([levels, picture.alpha], axis=-1))
    stream = io.BytesIO()
    try:
        image.save(stream, format, **_OPTIONS.get(format, {}))
    except (OSError, ValueError, OverflowError, KeyError, struct.error) as fault:
        raise OutputError(f"{shown(name)}: cannot be written as {format} ({shown(str(fault))}); choose .png") from fault
    return stream.getvalue()


def _png_with_16_bit_alpha(levels: np.ndarray, alpha: np.ndarray) -> bytes:
    # Pillow has no 16-bit image with alpha. PNG: 16 bits, colour type 4, big-endian, each row after its filter (0).
    height, width = levels.shape
    rows = np.stack([levels, alpha], axis=-1).astype(">u2").reshape(height, 2 * width).view(np.uint8)
    data = np.pad(rows, ((0, 0), (1, 0))).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 16, 4, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
