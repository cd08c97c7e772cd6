"""Grey levels of a picture in colour: its luminance, or what stands out in one of two colours, or in its alpha."""

from __future__ import annotations

import numpy as np
from PIL import Image

from restore.images.picture import Inks, Picture
from restore.images.raster import Raster, spread

LUMINANCE = np.array([0.299, 0.587, 0.114])
# Colours under alpha that differ by less, in levels of 255 as they show, are one: programs round what they hide.
_ALIKE = 2


def picture_of(raster: Raster, *, colour: bool = False) -> Picture:
    """The picture in the pixels of a file.

    A shape that is drawn in alpha alone (an icon) becomes grey levels, opaque being white; so do two colours, the
    darker being black; so does the luminance of all other colours. Restored pixels come back as opacity, in these two
    colours, and as greys.

    Args:
        raster: the pixels.
        colour: whether colours are kept as levels (H, W, 3), as of photographs.
    """
    notes, inks, levels, alpha = raster.notes, None, raster.levels, raster.alpha
    bands = levels if levels.ndim == 3 else levels[..., None]
    if alpha is not None and alpha.min() < alpha.max():
        white = np.iinfo(alpha.dtype).max
        flat = np.median(bands[alpha == alpha.max()], axis=0)
        if (np.abs(bands - flat).max(axis=-1) * (alpha / white)).max() <= _ALIKE * (white // 255):
            inks = Inks(np.dstack([bands, alpha]), np.append(flat, 0.0), np.append(flat, float(white)))
            notes = (*notes, "its shape is in its transparency, which is restored: opaque is white")
            return Picture(alpha, None, notes, inks, raster.stored)
    if levels.ndim == 2:
        return Picture(levels, alpha, notes, None, raster.stored)
    first = levels[0, 0]
    other = (levels != first).any(axis=-1)
    second = levels[np.unravel_index(other.argmax(), other.shape)]
    grey = not spread(levels).any()
    if not grey and (levels[other] == second).all():
        dark, light = sorted((first, second), key=lambda each: float(each @ LUMINANCE))
        inks = Inks(levels, dark.astype(float), light.astype(float))
        two = np.where((levels == light).all(axis=-1), 255, 0).astype(np.uint8)
        return Picture(two, alpha, (*notes, "its two colours are taken for black and white"), inks, raster.stored)
    if colour and not grey:
        return Picture(levels, alpha, notes, None, raster.stored)
    notes = notes if grey else (*notes, "its colours are read by their luminance, and come back as greys")
    luminance = levels[..., 1] if grey else np.asarray(Image.fromarray(levels).convert("L"))
    return Picture(luminance, alpha, notes, Inks(levels, np.zeros(3), np.full(3, 255.0)), raster.stored)
