"""Write a restored image at the depth of its source, in formats that keep every level."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from restore.errors import OutputError, UsageError, shown
from restore.images import pdf
from restore.images.picture import Picture, Stored

# Only formats that keep every level. PPM is written as a grey map (.pgm).
_FORMAT_OF_SUFFIX = {
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".webp": "WEBP",
    ".pgm": "PPM",
    ".pdf": "PDF",
}
_LOSSY_SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".avif", ".heic"}

# What each format can hold; see `Picture.mode`.
_CAPACITY = {
    "PNG": {"L", "LA", "RGB", "RGBA", "I;16", "LA;16"},
    "TIFF": {"L", "LA", "RGB", "RGBA", "I;16"},
    "BMP": {"L", "RGB"},
    "WEBP": {"L", "LA", "RGB", "RGBA"},
    "PPM": {"L", "I;16"},
    "PDF": {"L", "RGB"},
}
_SAID = {"L": "grey levels", "LA": "grey levels with transparency", "RGB": "colours", "RGBA": "transparent colours"}

# Pixels that are turned into levels together, as this takes several times their memory.
TOGETHER = 2**20

# Compressions of a TIFF that lose nothing, of any pixels and of bits alone; others are replaced by the first.
_LOSSLESS = ("tiff_adobe_deflate", "tiff_deflate", "tiff_lzw", "packbits", "raw")
_OF_BITS = ("group4", "group3", "tiff_ccitt", *_LOSSLESS)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file by its ending: PNG, TIFF, BMP, WEBP (lossless), PPM or PDF.

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
    """Check that `format` can hold the depth, the colours and the alpha of `picture`; raises UsageError if not."""
    if format == "PDF":
        pdf.require_writer(name)
    if picture.mode not in _CAPACITY.get(format, set()):
        depth = "16-bit" if picture.white > 255 else "8-bit"
        content = _SAID[picture.mode.replace(";16", "").replace("I", "L")]
        raise UsageError(f"{shown(name)}: {format} cannot hold {depth} {content}; choose .png")


def to_levels(
    picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None, *, name: str = "the restored image"
) -> np.ndarray:
    """Bring restored grey values back to the integer levels of their picture.

    Args:
        picture: the picture as it was read.
        restored: (H, W), or in colour (H, W, 3), floats in [0, 1]; values outside by a rounding error are clipped.
        hidden: (H, W), bool; if given, all other pixels are copied from `picture`, bit for bit.
        name: the result's name for messages.

    Returns:
        As `restored`, in the type of `picture.levels`, each the nearest level.

    Raises:
        OutputError: `restored` holds NaN or infinite values.
        ValueError: the shapes differ.
    """
    whole = picture.levels.shape
    for array, shape in ((restored, whole), (hidden, whole[:2])):
        if array is not None and array.shape != shape:
            raise ValueError(f"shape {array.shape} is not {shape}, the shape of the picture")
    hidden = hidden if hidden is None or len(whole) == 2 else np.broadcast_to(hidden[..., None], whole)
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
    """Make the content of an image file: the restored levels at the depth of `picture`, with its colours and alpha.

    For PDF this is an image that `restore.images.pages.bound` makes a file of.

    Args:
        picture, restored, hidden, name: as in `to_levels`.
        format: a name from `format_of`.

    Raises:
        UsageError: `format` cannot hold the depth or the alpha of `picture`.
        OutputError: `restored` holds NaN or infinite values, or the image is too large for `format`.
        ValueError: the shapes differ.
    """
    check_format(picture, format, name=name)
    bands = _bands(picture, restored, hidden, name)
    if picture.mode == "LA;16":
        return _png_with_16_bit_alpha(bands)
    image = _image_of(bands, bits=format == "PDF" or (picture.stored.bits and format in ("PNG", "TIFF")))
    options = _options(format, image.mode, picture.stored)
    if format == "PDF" and image.mode == "1":
        format, options = "TIFF", {**options, "compression": "group4", "strip_size": image.width * image.height}
    stream = io.BytesIO()
    try:
        image.save(stream, "PNG" if format == "PDF" else format, **options)
    except (OSError, ValueError, OverflowError, KeyError, struct.error) as fault:
        raise OutputError(f"{shown(name)}: cannot be written as {format} ({shown(str(fault))}); choose .png") from fault
    return stream.getvalue()


def as_pil(picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None) -> Image.Image:
    """The restored picture as a PIL image, in the mode it came in where Pillow has that; see `encode`."""
    if picture.mode == "LA;16":
        image = Image.open(io.BytesIO(encode(picture, restored, format="PNG", hidden=hidden)))
        image.load()
        return image
    return _image_of(_bands(picture, restored, hidden, "the restored image"), bits=picture.stored.bits)


def _bands(picture: Picture, restored: np.ndarray, hidden: np.ndarray | None, name: str) -> np.ndarray:
    """The pixels of the restored picture, (H, W) or (H, W, C)."""
    levels = to_levels(picture, restored, hidden, name=name)
    bands = levels if picture.inks is None else picture.inks.painted(levels, hidden)
    return bands if picture.alpha is None else np.dstack([bands, picture.alpha])


def _image_of(bands: np.ndarray, *, bits: bool) -> Image.Image:
    """An image of these pixels; with one bit each if that is wished, and they are black and white."""
    image = Image.fromarray(bands)
    if bits and image.mode == "L" and not ((bands > 0) & (bands < 255)).any():
        return image.convert("1", dither=Image.Dither.NONE)
    return image


def _options(format: str, mode: str, stored: Stored) -> dict[str, Any]:
    """What to tell Pillow when it saves an image."""
    if format == "WEBP":
        return {"lossless": True, "exact": True}  # keeps the levels under fully transparent pixels
    options: dict[str, Any] = {} if stored.dpi is None or format == "PPM" else {"dpi": stored.dpi}
    if format == "TIFF" and stored.compression:
        known = _OF_BITS if mode == "1" else _LOSSLESS
        options["compression"] = stored.compression if stored.compression in known else known[0]
    return options


def _png_with_16_bit_alpha(bands: np.ndarray) -> bytes:
    # Pillow has no 16-bit image with alpha. PNG: 16 bits, colour type 4, big-endian, each row after its filter (0).
    height, width, _ = bands.shape
    rows = bands.astype(">u2").reshape(height, 2 * width).view(np.uint8)
    data = np.pad(rows, ((0, 0), (1, 0))).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 16, 4, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
