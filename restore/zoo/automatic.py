"""The priors that `auto` chooses among."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from restore.errors import ModelError
from restore.sizes import Fit, said
from restore.zoo import search
from restore.zoo.description import Description
from restore.zoo.store import describe

# The published priors that `auto` considers: one for each kind of image.
PREFERRED_BINARY, PREFERRED_GREY = "tap-mnist", "tap-mnist-real"
PHOTOGRAPHS = "em-photographs"
OF_GREY = (PREFERRED_GREY, "ppca-cbcl", PHOTOGRAPHS)
PREFERRED = (PREFERRED_BINARY, "fw-caltech", "tap-text", "ising", "conv-shapes", *OF_GREY)


def candidates(image_shape: tuple[int, ...], grey: bool = False, fit: Fit = "tile") -> tuple[str, ...]:
    """The priors to choose among for images of a size: the preferred published ones, and the user's own.

    Priors of images of the very size go before all others, which restore them in windows. Of these, priors of whole
    objects are taken if such objects fill the image side by side, or if there are no others. Other published priors are
    variants for studies; they are taken only if no preferred one fits. Conditional priors are left out: each undoes
    one kind of damage, and only the user knows which. Convolutional priors, whose evidence cannot be compared, are
    taken for larger images beside others.

    Args:
        image_shape: height and width.
        grey: whether to take priors of grey images only; otherwise priors of binary images go first. The two are never
            mixed, as probabilities and densities cannot be compared.
        fit: what becomes of images of another size.

    Raises:
        ModelError: if there is none, or if images are to be resized for one of several.

    >>> candidates((28, 28))[:2]
    ('tap-mnist', 'fw-caltech')
    """
    known = [(folder, about) for folder in search.folders() if (about := _free(folder)) is not None]
    native = [folder for folder, about in known if about.image_shape == image_shape and not about.convolutional]
    if not native and fit == "resize":
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; name the one to resize them for")
    of_kind = [folder for folder, about in known if about.grey == grey]
    fitting = [folder for folder in native if folder in of_kind]
    if not fitting and not grey:
        # Priors of grey images know black and white ones too, but no mixture knows flips.
        fitting = [folder for folder, about in known if folder in native and not about.mixture]
    if not fitting and fit == "tile":
        suited = [about for folder, about in known if folder in of_kind and _suits(about, image_shape)]
        anywhere = any(about.tiling.overlap > 1 and not about.convolutional for about in suited)
        fitting = [folder for folder, about in known if about in suited] if anywhere else of_kind
    if not fitting:
        raise ModelError(f"no prior knows images of {said(image_shape)} pixels; train one on images like them")
    published = [folder.name for folder in fitting if folder.parent == search.published_folder()]
    own = [folder.name for folder in fitting if folder.parent != search.published_folder()]
    return (*([name for name in PREFERRED if name in published] or published), *own)


def _suits(about: Description, image_shape: tuple[int, ...]) -> bool:
    """Whether a prior's windows suit an image: all do that overlap, and whole objects that are not cut."""
    sides = zip(image_shape, about.image_shape, strict=True)
    return about.tiling.overlap > 1 or all(length <= side or length % side == 0 for length, side in sides)


@cache
def leave_out(fault: str) -> None:
    """Warn about a prior that cannot be used where others can; once, however many images there are."""
    warnings.warn(f"{fault} (left out)", stacklevel=3)


def _free(folder: Path) -> Description | None:
    """What a prior says of itself, if it is for any damage; None of a conditional one, or if it cannot be read."""
    try:
        about = describe(folder)
    except ModelError as fault:
        leave_out(str(fault))
        return None
    return None if about.conditional else about
