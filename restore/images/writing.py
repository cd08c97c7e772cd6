"""Write a restored image at the depth of its source, in formats that keep every level."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from PIL import Image
from PIL.ExifTags import Base as Tag

from restore.errors import OutputError, UsageError, reason
from restore.images import pdf, tiff
from restore.images.formats import FORMATS
from restore.images.picture import Picture

# So many rows of a picture become levels at a time.
ROWS_WRITTEN = 64

# Compressions of a TIFF that lose nothing, of any pixels and of bits alone; others are replaced by the first.
_LOSSLESS = ("tiff_adobe_deflate", "tiff_deflate", "tiff_lzw", "packbits", "raw")
_OF_BITS = ("group4", "group3", "tiff_ccitt", *_LOSSLESS)
# The colour space of an ICC profile, in its header, by the mode of an image; others are dropped.
_SPACE = {"1": b"GRAY", "L": b"GRAY", "LA": b"GRAY", "I;16": b"GRAY", "P": b"RGB ", "RGB": b"RGB ", "RGBA": b"RGB "}
# Names, for messages, of the facts that a picture keeps, by the keys of its `info`.
_KEPT = {"dpi": "resolution", "icc_profile": "colour profile", "exif": "EXIF", "xmp": "XMP"}
_KEPT |= {"comment": "text comment", "chunks": "texts and colour space"}
_PNG_XMP = b"XML:com.adobe.xmp\0\0\0\0\0"


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
    white = np.float64(picture.white)
    # In strips, as the numbers take several times the memory of the levels.
    for top in range(0, whole[0], ROWS_WRITTEN):
        rows = slice(top, top + ROWS_WRITTEN)
        where = changed[rows]
        levels[rows][where] = np.rint(restored[rows][where].clip(0, 1) * white)
    return levels


def encode(
    picture: Picture,
    restored: np.ndarray,
    *,
    format: str,
    hidden: np.ndarray | None = None,
    name: str = "the restored image",
    note: Callable[[str], object] = str,
) -> bytes:
    """Encode restored values, as in `to_levels`, as the content of an image file, with all else the picture keeps.

    For PDF this is a PNG that `restore.images.pages.bound` makes a file of; `note` gets a sentence on what is lost.
    Raises UsageError if the format cannot hold the picture, and OutputError for NaN, or an image too large for the
    format.
    """
    check_format(picture, format, name=name)
    image = as_pil(picture, restored, hidden, name=name, format=format)
    keeps = FORMATS[format].keeps.split()
    kept: dict[str, Any] = {key: value for key, value in image.info.items() if key in keeps}
    words = _KEPT | {"tags": f"tags {', '.join(map(str, sorted(picture.info.get('tags', ()))))}"}
    lost = {key: word for key, word in words.items() if key in picture.info and key not in kept}
    if lost:
        note(f"its {', '.join(lost.values())} could not be copied into the {format}; {_remedy(lost)}")
    if picture.indices is not None and image.mode != "P":
        note("the result is stored without its palette, and no colour is lost")
    try:
        return _saved(image, "PNG" if format == "PDF" else format, kept)
    except (OSError, ValueError, OverflowError, KeyError, struct.error) as fault:
        raise OutputError(f"cannot be written as {format} ({reason(fault)}); choose .png", name) from fault


def _remedy(lost: Collection[str]) -> str:
    """How to keep what a format cannot hold, by its keys in `info`."""
    endings = (format.suffixes[0] for format in FORMATS.values() if format.keeps and {*lost} <= {*format.keeps.split()})
    ending = next(endings, "")
    return f"name a {ending} as output to keep that" if ending else "the original file still has that"


def _saved(image: Image.Image, format: str, kept: dict[str, Any]) -> bytes:
    """The content of a file of an image, with what it keeps of its source."""
    stream, tags = io.BytesIO(), tiff.Tags()
    if format == "TIFF":
        tags = tiff.kept(tiff.tags_of(kept.pop("exif", b"")[6:]), exif=True)[0] | kept.pop("tags", {})
        tags |= {Tag.XMLPacket: (1, kept.pop("xmp"))} if "xmp" in kept else {}
        known = _OF_BITS if image.mode == "1" else _LOSSLESS
        if kept.get("compression") not in known:
            kept["compression"] = known[0]
    if format == "PNG":
        from PIL.PngImagePlugin import PngInfo

        kept["pnginfo"] = PngInfo()
        for kind, data in kept.pop("chunks", ()):
            kept["pnginfo"].add(kind, data)
        if "xmp" in kept:
            kept["pnginfo"].add(b"iTXt", _PNG_XMP + kept.pop("xmp"))
    image.save(stream, format, **FORMATS[format].options, **kept)
    return tiff.bound([stream.getvalue()], tags) if tags else stream.getvalue()


def as_pil(
    picture: Picture,
    restored: np.ndarray,
    hidden: np.ndarray | None = None,
    *,
    name: str = "the restored image",
    format: str = "PNG",
) -> Image.Image:
    """The restored picture, as in `to_levels`, as a PIL image with what it keeps of its source.

    If all is replaced, what is fully transparent keeps its colour, which nobody sees.
    If its source has a palette or one bit for each pixel, it has so too if its colours and the format allow it; if it
    is black and white, it has one bit for each pixel in a PDF.
    """
    if hidden is None and picture.alpha is not None:
        hidden = picture.alpha > 0
    levels = to_levels(picture, restored, hidden, name=name)
    modes = FORMATS[format].modes.split()
    bands = levels if picture.inks is None else picture.inks.painted(levels, hidden)
    image = Image.fromarray(bands if picture.alpha is None else np.dstack([bands, picture.alpha]))
    if "P" in modes and picture.indices is not None:
        image = picture.indices.image_of(np.atleast_3d(np.asarray(image))) or image
    as_bits = (picture.bits and "1" in modes) or format == "PDF"
    if as_bits and image.mode == "L" and not ((bands > 0) & (bands < 255)).any():
        image = image.convert("1", dither=Image.Dither.NONE)
    image.info |= dict(picture.info)
    if image.info.get("icc_profile", b"")[16:20] != _SPACE[image.mode]:
        image.info.pop("icc_profile", None)
    return image
