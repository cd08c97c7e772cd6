"""The priors that `auto` chooses among."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from restore.errors import ModelError
from restore.sizes import near, said, without_resizing
from restore.zoo import search
from restore.zoo.store import WEIGHTS, describe

# The published priors that `auto` considers if they know the image's size: one for each kind of image.
PREFERRED_BINARY = "tap-mnist"
PREFERRED_SILHOUETTES = "fw-caltech"
PREFERRED_GREY = "tap-mnist-real"
PREFERRED_FACES = "ppca-cbcl"
PREFERRED = (PREFERRED_BINARY, PREFERRED_SILHOUETTES, PREFERRED_GREY, PREFERRED_FACES)


def candidates(image_shape: tuple[int, ...], grey: bool = False) -> tuple[str, ...]:
    """The priors to choose among for images of a size: the preferred published ones, and the user's own.

    Other published priors are variants for studies; they are taken only if no preferred one fits. Conditional priors
    are left out: each undoes one kind of damage, and only the user knows which.

    Args:
        image_shape: height and width.
        grey: whether to take priors of grey images only; if not, those of binary images go first. The two are never
            mixed, as probabilities and densities cannot be compared.

    Raises:
        ModelError: if no prior knows images of this size.
    """
    kinds = [(folder, kind) for folder in search.folders() if (kind := _knows(folder, image_shape)) is not None]
    fitting = [folder for folder, kind in kinds if kind == grey] or [folder for folder, _ in kinds if not grey]
    if not fitting:
        remedy = _elsewhere(PREFERRED_GREY if grey else PREFERRED_BINARY, image_shape)
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; {remedy}")
    published = [folder.name for folder in fitting if folder.parent == search.published_folder()]
    own = [folder.name for folder in fitting if folder.parent != search.published_folder()]
    return (*([name for name in PREFERRED if name in published] or published), *own)


@cache
def leave_out(fault: str) -> None:
    """Warn about a prior that cannot be used where others can; once, however many images there are."""
    warnings.warn(f"{fault} (left out)", stacklevel=3)


def _elsewhere(preferred: str, image_shape: tuple[int, ...]) -> str:
    """What to do with an image of a size that no prior knows."""
    folder = search.published_folder() / preferred
    if not (folder / WEIGHTS).is_file():
        return "train a prior on images of its size"
    wanted = describe(folder).image_shape
    if near(image_shape, wanted):
        return f"give --model {preferred} --fit resize"
    return without_resizing(image_shape, wanted)


def _knows(folder: Path, image_shape: tuple[int, ...]) -> bool | None:
    """Whether a prior for images of a size is one of grey images; None if it does not fit, or is conditional."""
    try:
        about = describe(folder)
    except ModelError as fault:
        leave_out(str(fault))
        return None
    return about.grey if about.image_shape == image_shape and not about.conditional else None
