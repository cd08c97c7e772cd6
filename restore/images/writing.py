"""Write a restored image at the depth of its source, in formats that keep every level."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from PIL import Image

from restore.errors import OutputError, UsageError, reason, shown
from restore.images import pdf
from restore.images.formats import FORMATS
from restore.images.picture import Picture

# Pixels that are turned into levels together, as this takes several times their memory.
TOGETHER = 2**20
# Compressions of a TIFF that lose nothing, of any pixels and of bits alone; others are replaced by the first.
_LOSSLESS = ("tiff_adobe_deflate", "tiff_deflate", "tiff_lzw", "packbits", "raw")
_OF_BITS = ("group4", "group3", "tiff_ccitt", *_LOSSLESS)
# The colour space of an ICC profile, in its header, by the mode of an image; others are dropped.
_SPACE = {"1": b"GRAY", "L": b"GRAY", "LA": b"GRAY", "I;16": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB "}


def check_format(picture: Picture, format: str, *, name: str) -> None:
    """Raise UsageError if a format cannot hold the depth, the colours or the alpha of a picture."""
    if format == "PDF":
        pdf.require_writer(name)
    if picture.mode not in FORMATS[format].modes.split():
        raise UsageError(f"{shown(name)}: {format} cannot hold an image of mode {picture.mode}; choose .png")


def to_levels(
    picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None, *, name: str = "the restored image"
) -> np.ndarray:
    """Bring restored values back to the integer levels of their picture.

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
    image = _image(picture, restored, hidden, name, bits=picture.stored.bits or format == "PDF")
    if image.mode not in FORMATS[format].modes.split():
        image = image.convert("L")
    options: dict[str, Any] = dict(FORMATS[format].options) | {str(key): value for key, value in image.info.items()}
    as_fax = format == "PDF" and image.mode == "1"
    if format == "TIFF" and picture.stored.compression:
        known = _OF_BITS if image.mode == "1" else _LOSSLESS
        options["compression"] = picture.stored.compression if picture.stored.compression in known else known[0]
    if as_fax:
        options |= {"compression": "group4", "strip_size": image.width * image.height}
    stream = io.BytesIO()
    try:
        image.save(stream, "TIFF" if as_fax else "PNG" if format == "PDF" else format, **options)
    except (OSError, ValueError, OverflowError, KeyError, struct.error) as fault:
        raise OutputError(f"{shown(name)}: cannot be written as {format} ({reason(fault)}); choose .png") from fault
    return stream.getvalue()


def as_pil(picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None) -> Image.Image:
    """The restored picture as a PIL image, with its resolution and colour profile; see `encode`."""
    return _image(picture, restored, hidden, "the restored image", bits=picture.stored.bits)


def _image(picture: Picture, restored: np.ndarray, hidden: np.ndarray | None, name: str, *, bits: bool) -> Image.Image:
    """The restored picture; with one bit each if that is wished, and its pixels are black and white."""
    levels, stored = to_levels(picture, restored, hidden, name=name), picture.stored
    bands = levels if picture.inks is None else picture.inks.painted(levels, hidden)
    image = Image.fromarray(bands if picture.alpha is None else np.dstack([bands, picture.alpha]))
    if bits and image.mode == "L" and not ((bands > 0) & (bands < 255)).any():
        image = image.convert("1", dither=Image.Dither.NONE)
    image.info |= {} if stored.dpi is None else {"dpi": stored.dpi}
    image.info |= {"icc_profile": stored.profile} if stored.profile[16:20] == _SPACE[image.mode] else {}
    return image
