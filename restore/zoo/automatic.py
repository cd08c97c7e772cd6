"""The priors that `auto` chooses among."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from restore.errors import ModelError, RestoreWarning
from restore.sizes import Fit, said
from restore.zoo import search
from restore.zoo.description import Description
from restore.zoo.store import describe


def preferred(grey: bool = False) -> str:
    """The published prior that `auto` considers first, of black and white or of grey pictures; empty if none is there.

    >>> preferred(), preferred(grey=True)
    ('tap-mnist', 'tap-mnist-real')
    """
    return next((folder.name for folder, _ in _known(grey) if search.is_published(folder)), "")


def candidates(image_shape: tuple[int, ...], grey: bool = False, fit: Fit = "tile") -> tuple[str, ...]:
    """The priors to choose among for pictures of a size: those whose headers have a place in `auto`.

    These are priors of that size and of any size, and priors of whole objects that fill the picture side by side; all
    priors for such pixels if there are none.

    Args:
        image_shape: height and width.
        grey: True for priors of grey pictures, False for those of black and white ones.
        fit: "resize" if pictures of another size are resized.

    Raises:
        ModelError: if there is none, or if pictures are to be resized for one of several.

    >>> candidates((28, 28))
    ('tap-mnist', 'fw-caltech', 'conv-text', 'conv-art')
    """
    known = _known(grey)
    native = any(header.image_shape == image_shape and not header.anywhere for _, header in known)
    if not known or (fit == "resize" and not native):
        remedy = "name the one to resize them for" if fit == "resize" else "train one on images like them"
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; {remedy}")
    suited = [folder.name for folder, header in known if _suits(header, image_shape)]
    return tuple(suited or (folder.name for folder, _ in known))


def _known(grey: bool) -> list[tuple[Path, Description]]:
    """The priors with a place in `auto` for such pictures: the published ones first, in their order."""
    known = [
        (folder, header)
        for folder in search.folders()
        if (header := readable(folder)) and header.auto and not header.task and header.grey == grey
    ]
    return sorted(known, key=lambda each: (not search.is_published(each[0]), each[1].auto, each[0].name))


def _suits(header: Description, image_shape: tuple[int, ...]) -> bool:
    """True for a prior that restores any size, and for one of whole objects that are not cut."""
    sides = zip(image_shape, header.image_shape, strict=True)
    return header.anywhere or all(length % side == 0 for length, side in sides)


@cache
def leave_out(fault: str) -> None:
    """Warn about a prior that cannot be used where others can; once, however many images there are."""
    warnings.warn(f"{fault} (left out)", RestoreWarning, stacklevel=3)


def readable(folder: Path) -> Description | None:
    """The header of a prior; None, after a warning, if it cannot be read.

    >>> from restore.zoo import find
    >>> readable(find("tap-mnist")).image_shape
    (28, 28)
    """
    try:
        return describe(folder)
    except ModelError as fault:
        leave_out(str(fault))
        return None
