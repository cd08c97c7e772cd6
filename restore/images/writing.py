"""Write a restored image at the depth of its source, in formats that keep every level."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from PIL import Image

from restore.errors import OutputError, UsageError, reason
from restore.images import pdf
from restore.images.formats import FORMATS
from restore.images.picture import Picture

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
        raise UsageError(f"{format} cannot hold an image of mode {picture.mode}; choose .png", name)


def to_levels(
    picture: Picture, restored: np.ndarray, hidden: np.ndarray | None = None, *, name: str = "the restored image"
) -> np.ndarray:
    """Bring restored values, (H, W) or (H, W, 3), back to the nearest integer levels of their picture.

    Values are clipped to [0, 1]; NaN and infinite ones raise OutputError. If `hidden`, (H, W), is given, all other
    pixels are copied from the picture, bit for bit.
    """
    whole = picture.levels.shape
    for array, shape in ((restored, whole), (hidden, whole[:2])):
        if array is not None and array.shape != shape:
            raise ValueError(f"shape {array.shape} is not {shape}, the shape of the picture")
    if not np.isfinite(restored).all():
        raise OutputError("holds NaN or infinite values and is not saved; try another model or solver", name)
    levels = picture.levels.copy()
    changed = np.ones(whole[:2], bool) if hidden is None else hidden
    # Row by row, as the numbers take several times the memory of the levels.
    for row, values, where in zip(levels, restored, changed, strict=True):
        row[where] = np.rint(np.clip(values[where], 0, 1) * np.float64(picture.white))
    return levels


def encode(
    picture: Picture,
    restored: np.ndarray,
    *,
    format: str,
    hidden: np.ndarray | None = None,
    name: str = "the restored image",
) -> bytes:
    """Make the content of an image file of restored values, as in `to_levels`, with the depth, colours and alpha.

    For PDF this is a PNG that `restore.images.pages.bound` makes a file of. Raises UsageError if the format cannot
    hold the picture, and OutputError for NaN, or an image too large for the format.
    """
    check_format(picture, format, name=name)
    image = as_pil(picture, restored, hidden, name=name, bits=picture.bits or format == "PDF")
    if image.mode not in FORMATS[format].modes.split():
        image = image.convert("L")
    options: dict[str, Any] = {key: image.info[key] for key in ("dpi", "icc_profile") if key in image.info}
    if format == "TIFF" and (compression := picture.info.get("compression")):
        known = _OF_BITS if image.mode == "1" else _LOSSLESS
        options["compression"] = compression if compression in known else known[0]
    stream = io.BytesIO()
    try:
        image.save(stream, "PNG" if format == "PDF" else format, **FORMATS[format].options, **options)
    except (OSError, ValueError, OverflowError, KeyError, struct.error) as fault:
        raise OutputError(f"cannot be written as {format} ({reason(fault)}); choose .png", name) from fault
    return stream.getvalue()


def as_pil(
    picture: Picture,
    restored: np.ndarray,
    hidden: np.ndarray | None = None,
    *,
    name: str = "the restored image",
    bits: bool | None = None,
) -> Image.Image:
    """The restored picture, as in `to_levels`, as a PIL image with what it keeps of its source.

    With `bits` it has one bit for each pixel if it is black and white; by default if its source has.
    """
    levels = to_levels(picture, restored, hidden, name=name)
    bands = levels if picture.inks is None else picture.inks.painted(levels, hidden)
    image = Image.fromarray(bands if picture.alpha is None else np.dstack([bands, picture.alpha]))
    as_bits = picture.bits if bits is None else bits
    if as_bits and image.mode == "L" and not ((bands > 0) & (bands < 255)).any():
        image = image.convert("1", dither=Image.Dither.NONE)
    image.info = dict(picture.info)
    if image.info.get("icc_profile", b"")[16:20] != _SPACE[image.mode]:
        image.info.pop("icc_profile", None)
    return image
