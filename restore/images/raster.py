"""The pixels of a file decoded by Pillow, at the file's depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from restore.errors import InputError
from restore.images.picture import UNKNOWN, Stored, check_unit_range

# Colour spaces that are converted, which rounds: the bands of a grey may then differ by this many levels.
_CONVERTED = {"CMYK": 2, "YCbCr": 2, "LAB": 2, "HSV": 2}
SHALLOW = "its 16-bit levels are read with 8 bits"


@dataclass(frozen=True, eq=False)
class Raster:
    """The pixels of a file: levels, (H, W) or in colour (H, W, 3), alpha, (H, W) or None, and notes."""

    levels: np.ndarray
    alpha: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    stored: Stored = UNKNOWN


def expand(image: Image.Image, label: str) -> Raster:
    """The levels of an image of any mode.

    Raises:
        InputError: if its levels have no defined range, or lie outside it.
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        levels = np.asarray(image).astype(np.uint16)
        clear = image.info.get("transparency")
        if clear is None:
            return Raster(levels)
        alpha = np.where(levels == clear, 0, 255).astype(np.uint8)
        return Raster((levels >> 8).astype(np.uint8), alpha, (SHALLOW,))
    if image.mode == "F":
        values = np.asarray(image)
        check_unit_range(values, name=label)
        levels = np.rint(values.clip(0, 1) * np.float64(65535)).astype(np.uint16)
        return Raster(levels, notes=("its floating-point levels are rounded to 16 bits",))
    if image.mode == "I":
        raise InputError(f"{label}: has integer levels whose white is not defined; convert it to 8 or 16 bits first")
    grey, transparent = image.mode in ("1", "L", "LA", "La"), image.has_transparency_data
    bands = np.array(image.convert(("L" if grey else "RGB") + ("A" if transparent else "")))
    opacity = bands[..., -1] if transparent else None
    if grey:
        return Raster(bands[..., 0] if transparent else bands, opacity)
    colour, palette = bands[..., :3], image.mode in ("P", "PA")
    if not (palette or image.mode in _CONVERTED):
        return Raster(colour, opacity)
    plain = spread(colour).max() <= _CONVERTED.get(image.mode, 0)
    into = "grey levels" if plain else "colours"
    note = f"its palette is expanded to {into}" if palette else f"it is converted from {image.mode} to {into}"
    return Raster(colour[..., 1] if plain else colour, opacity, (note,))


def spread(colour: np.ndarray) -> np.ndarray:
    """By how many levels the three bands of each pixel (H, W, 3) differ, (H, W): 0 for grey."""
    # Band by band: ten times as fast as along an axis of three.
    red, green, blue = np.moveaxis(colour, -1, 0)
    return np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
