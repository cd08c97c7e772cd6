"""Turn an image in any mode of Pillow into grey levels: its luminance, one of two colours, or its opacity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image

from restore.errors import InputError
from restore.images.picture import BY_LUMINANCE, Indices, Inks, Picture, check_unit_range

LUMINANCE = np.array([0.299, 0.587, 0.114])
SHALLOW = "its 16-bit levels are read with 8 bits"
# Levels of 255 by which equal colours may differ: colour spaces are converted, and hidden colours kept, with rounding.
_ALIKE = 2

# Axes of colour in which photographs are restored plane by plane: light, red against blue, green against both. They are
# orthonormal, so noise has the same sigma in each (Ruderman, Cronin & Chiao, J. Opt. Soc. Am. A 15, 1998).
AXES = np.array(
    [
        [1, 1, 1],
        [1, 0, -1],
        [1, -2, 1],
    ]
) / np.sqrt([[3], [2], [6]])
# Planes are turned about middle grey, so that the planes of colour of a grey picture are of middle grey.
MIDDLE = 0.5


def picture_of(image: Image.Image, label: str, *, colour: bool = False) -> Picture:
    """The picture in an image; raises InputError if its levels have no defined range, or lie outside it.

    A shape that is drawn in alpha alone (an icon) becomes grey levels, opaque being white; so do two colours, the
    darker being black; so does the luminance of other colours, unless they are kept as levels (H, W, 3). Restored
    pixels come back as opacity, in these two colours, and as greys.
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        notes = ("its transparent level is read as opaque",) if "transparency" in image.info else ()
        return Picture(np.asarray(image).astype(np.uint16), notes=notes)
    if image.mode == "F":
        values = np.asarray(image)
        check_unit_range(values, name=label)
        levels = np.rint(values.clip(0, 1) * np.float64(65535)).astype(np.uint16)
        return Picture(levels, notes=("its floating-point levels are rounded to 16 bits",))
    if image.mode == "I":
        raise InputError("has integer levels whose white is not defined; convert it to 8 or 16 bits first", label)
    picture = _of_bands(image, colour)
    if image.mode == "P" and image.getpalette():
        return replace(picture, indices=Indices.of(image, len(picture.mode)))
    return picture


def in_planes(colours: np.ndarray) -> np.ndarray:
    """Colours (..., 3) along `AXES`; grey of a half is a half on each.

    >>> planes = in_planes(np.array([0.1, 0.5, 0.9]))
    >>> planes.round(2).tolist(), in_colours(planes).round(2).tolist()
    ([0.5, -0.07, 0.5], [0.1, 0.5, 0.9])
    """
    return np.asarray(MIDDLE + (colours - MIDDLE) @ AXES.T)


def in_colours(planes: np.ndarray) -> np.ndarray:
    """The inverse of `in_planes`."""
    return np.asarray(MIDDLE + (planes - MIDDLE) @ AXES)


def spread(bands: np.ndarray) -> np.ndarray:
    """The range of levels over the bands of each pixel (H, W, C), (H, W): 0 for grey."""
    # Band by band: ten times as fast as along an axis of three.
    parts = np.moveaxis(bands, -1, 0)
    return np.maximum.reduce(list(parts)) - np.minimum.reduce(list(parts))


def _of_bands(image: Image.Image, colour: bool) -> Picture:
    """The picture in bands of 8 bits."""
    grey = image.mode in ("1", "L", "LA", "La")
    clear = image.has_transparency_data
    bands = np.atleast_3d(np.array(image.convert(("L" if grey else "RGB") + "A" * clear)))
    bands, alpha = (bands[..., :-1], bands[..., -1]) if clear else (bands, None)
    notes: tuple[str, ...] = ()
    if not grey and image.mode not in ("RGB", "RGBA", "RGBX", "RGBa"):
        bands = bands[..., 1:2] if spread(bands).max() <= _ALIKE else bands
        kind = "colours" if bands.shape[2] == 3 else "grey levels"
        notes = () if image.mode == "P" else (f"it is converted from {image.mode} to {kind}",)
    if alpha is not None and alpha.min() < alpha.max():
        flat = np.median(bands[alpha == alpha.max()], axis=0)
        if (np.abs(bands - flat).max(axis=-1) * (alpha / 255)).max() <= _ALIKE:
            inks = Inks(np.dstack([bands, alpha]), np.append(flat, 0.0), np.append(flat, 255.0))
            return Picture(alpha, None, (*notes, "its shape is in its transparency: opaque is white"), inks)
    if bands.shape[2] == 1:
        return Picture(bands[..., 0], alpha, notes)
    if not spread(bands).any():
        return Picture(bands[..., 1], alpha, notes, Inks(bands, np.zeros(3), np.full(3, 255.0)))
    other = (bands != bands[0, 0]).any(axis=-1)
    second = bands[np.unravel_index(other.argmax(), other.shape)]
    if (bands[other] == second).all():
        dark, light = sorted((bands[0, 0], second), key=lambda ink: float(ink @ LUMINANCE))
        levels = np.where((bands == light).all(axis=-1), 255, 0).astype(np.uint8)
        notes = (*notes, "its two colours are taken for black and white")
        return Picture(levels, alpha, notes, Inks(bands, dark.astype(float), light.astype(float)))
    if colour:
        return Picture(bands, alpha, notes)
    luminance = np.asarray(Image.fromarray(bands).convert("L"))
    return Picture(luminance, alpha, (*notes, BY_LUMINANCE), Inks(bands, np.zeros(3), np.full(3, 255.0)))
