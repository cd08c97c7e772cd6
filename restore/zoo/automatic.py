"""The priors that `auto` chooses among."""

from __future__ import annotations

import math
import warnings
from functools import cache
from pathlib import Path

from restore.errors import ModelError
from restore.sizes import Fit, said
from restore.zoo import search
from restore.zoo.description import LEFT_OUT, Description
from restore.zoo.store import describe


def preferred(grey: bool = False) -> str:
    """The published prior that `auto` considers first, of black and white or of grey pictures; empty if none is there.

    >>> preferred(), preferred(grey=True)
    ('tap-mnist', 'tap-mnist-real')
    """
    return next((folder.name for folder, about in _known(grey) if about.auto), "")


def field() -> str | None:
    """The published prior that only knows how alike neighbours are: a prior that is named has to know more."""
    return next((folder.name for folder, about in _known(grey=False) if about.auto and about.tiling.neighbours), None)


def candidates(image_shape: tuple[int, ...], grey: bool = False, fit: Fit = "tile") -> tuple[str, ...]:
    """The priors to choose among for pictures of a size: the preferred published ones, and the user's own.

    Published priors of that very size are enough beside the field of neighbours; else all that restore any size, and
    those of whole objects that fill the picture side by side. Conditional priors are left out: each undoes one kind of
    damage, and only the user knows which.

    Args:
        image_shape: height and width.
        grey: True for priors of grey pictures, False for those of black and white ones.
        fit: "resize" if pictures of another size are resized.

    Raises:
        ModelError: if there is none, or if pictures are to be resized for one of several.

    >>> candidates((28, 28))
    ('tap-mnist', 'fw-caltech', 'ising')
    """
    published = search.published_folder()
    usable = [(folder, about) for folder, about in _known(grey) if about.auto > 0 or folder.parent != published]
    native = [folder for folder, about in usable if about.image_shape == image_shape and not about.anywhere]
    if not native and fit == "resize":
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; name the one to resize them for")
    enough = fit == "resize" or any(folder.parent == published for folder in native)
    others = [
        folder
        for folder, about in usable
        if folder not in native and (about.tiling.neighbours if enough else _suits(about, image_shape))
    ]
    chosen = {folder.name for folder in (*native, *others)} or {folder.name for folder, _ in usable}
    if not chosen:
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; train one on images like them")
    return tuple(folder.name for folder, _ in usable if folder.name in chosen)


def _known(grey: bool) -> list[tuple[Path, Description]]:
    """The priors for any damage to such pictures: those that `auto` considers in their order, then all others."""
    free = [(folder, about) for folder in search.folders() if (about := _free(folder)) and about.grey == grey]
    return sorted(free, key=lambda known: (known[1].auto or math.inf, known[0].name))


def _suits(about: Description, image_shape: tuple[int, ...]) -> bool:
    """True for a prior that restores any size, and for one of whole objects that are not cut."""
    sides = zip(image_shape, about.image_shape, strict=True)
    return about.anywhere or all(length % side == 0 for length, side in sides)


@cache
def leave_out(fault: str) -> None:
    """Warn about a prior that cannot be used where others can; once, however many images there are."""
    warnings.warn(f"{fault} (left out)", stacklevel=3)


def _free(folder: Path) -> Description | None:
    """What a prior says of itself, if it is for any damage and any use; None if not, or if it cannot be read."""
    try:
        about = describe(folder)
    except ModelError as fault:
        leave_out(str(fault))
        return None
    return None if about.task or about.auto == LEFT_OUT else about
