"""Which pixels of a picture to fill: a mask, from its levels or its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.errors import InputError, shown
from restore.images.picture import BY_LUMINANCE
from restore.images.reading import Source, read_picture
from restore.sizes import DEFAULT_MAX_PIXELS, size_text

# A mask that marks more than this share of an image may be the wrong way round.
_MUCH = 0.5


@dataclass(frozen=True, eq=False)
class Mask:
    """The pixels of a picture to fill: True in (H, W), white in the file; and what the user should know about them."""

    hidden: np.ndarray
    notes: tuple[str, ...] = ()


def read_mask(
    source: Source, *, name: str, shape: tuple[int, ...], frame: int | None = None, max_pixels: int = DEFAULT_MAX_PIXELS
) -> Mask:
    """Read which pixels of a picture of this shape to fill: white of two colours, 1 of 0 and 1, or paint on a layer.

    Raises InputError as `read_picture`, and for another size, more than two colours, and masks that mark every pixel,
    or none although some are not black.
    """
    read = read_picture(source, name=name, frame=frame, max_pixels=max_pixels)
    picture = read.as_mask
    notes = [f"the mask: {note}" for note in read.notes]
    if read.levels.max() == 1:
        notes.append("the mask has no other levels than 0 and 1, and pixels of 1 are filled")
    if not np.isin(picture.pixels, (0, 1)).all():
        notes.append("the mask has soft edges or grey levels, and pixels above half of white are filled")
    if picture.alpha is not None and (picture.alpha < picture.white).any():
        notes.append("the mask is transparent in places, which count as black and are not filled")
    mask = mask_of(picture.pixels, shape, picture.notes, shown(name))
    return Mask(mask.hidden, (*notes, *mask.notes))


def mask_of(levels: np.ndarray, shape: tuple[int, ...], read: Sequence[str], label: str = "") -> Mask:
    """The mask of these levels (H, W), of which `read` tells how they were read; raises InputError for what is none."""
    if levels.shape != tuple(shape[:2]):
        sizes = f"{size_text(levels.shape)} pixels, but the image has {size_text(shape[:2])}"
        raise InputError(f"the mask has {sizes}; give a mask of the same width and height", label)
    if BY_LUMINANCE in read:
        raise InputError("the mask has more than two colours; paint white on black what is to be filled", label)
    hidden = levels > 0.5
    share = float(hidden.mean())
    if share == 1:
        raise InputError("the mask marks every pixel; leave black what is to be kept", label)
    if levels.any() and not share:
        raise InputError("the mask marks no pixel; make white and opaque what is to be filled", label)
    if not share:
        return Mask(hidden, ("the mask marks nothing to fill",))
    doubt = f"the mask marks {100 * share:.0f} % of the image; white is what is filled, not what is kept"
    return Mask(hidden, (doubt,) if share > _MUCH else ())
