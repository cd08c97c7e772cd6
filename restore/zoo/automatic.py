"""The priors that `auto` chooses among."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from restore.errors import ModelError, RestoreWarning
from restore.sizes import Fit, size_text
from restore.zoo import search
from restore.zoo.description import Description
from restore.zoo.store import describe

# The prior that tells which parts of a grey picture are a page.
PARTS_PRIOR = "conv-parts"


def preferred(grey: bool = False) -> str:
    """Name of the published prior that `auto` tries first; empty if there is none.

    >>> preferred(), preferred(grey=True)
    ('tap-mnist', 'tap-mnist-real')
    """
    return next((folder.name for folder, _ in _known(grey) if search.is_published(folder)), "")


def reader() -> str:
    """Name of the published prior that reads grey pages; empty if there is none.

    >>> reader()
    'conv-scan'
    """
    published = (folder for folder in search.folders() if search.is_published(folder) and folder.name != PARTS_PRIOR)
    known = ((folder, readable(folder)) for folder in published)
    return next((folder.name for folder, header in known if header and header.auto and header.kind.pages), "")


def candidates(image_shape: tuple[int, ...], grey: bool = False, fit: Fit = "tile") -> tuple[str, ...]:
    """The priors among which `auto` chooses for pictures of a size.

    These are priors of that size and of any size, and priors of whole objects that fill the picture side by side. If
    there are none of these, all priors for such pixels are candidates.

    Args:
        image_shape: height and width.
        grey: True for priors of grey pictures, False for those of black and white ones.
        fit: "resize" if pictures of another size are resized.

    Raises:
        ModelError: if there is none, or if pictures are to be resized and no prior has their size.

    >>> candidates((28, 28))
    ('tap-mnist', 'fw-caltech', 'conv-text', 'conv-art')
    """
    known = _known(grey)
    native = any(header.image_shape == image_shape and not header.anywhere for _, header in known)
    if not known or (fit == "resize" and not native):
        remedy = "name the one to resize them for" if fit == "resize" else "train one on images like them"
        raise ModelError(f"no prior knows images of {size_text(image_shape)} pixels; {remedy}")
    suited = [folder.name for folder, header in known if _suits(header, image_shape)]
    return tuple(suited or (folder.name for folder, _ in known))


def _known(grey: bool) -> list[tuple[Path, Description]]:
    """The priors of `auto` for such pictures: published ones first, in their order."""
    known = [
        (folder, header)
        for folder in search.folders()
        if (header := readable(folder))
        and header.auto
        and not (header.task or header.kind.pages)
        and header.grey == grey
    ]
    return sorted(known, key=lambda prior: (not search.is_published(prior[0]), prior[1].auto, prior[0].name))


def _suits(header: Description, image_shape: tuple[int, ...]) -> bool:
    """True for a prior that restores pictures of this size without cutting objects."""
    sides = zip(image_shape, header.image_shape, strict=True)
    return header.anywhere or all(length % side == 0 for length, side in sides)


@cache
def leave_out(fault: str) -> None:
    """Warn once that a prior is skipped, however many images there are."""
    warnings.warn(f"{fault} (left out)", RestoreWarning, stacklevel=3)


def readable(folder: Path) -> Description | None:
    """Read the header of a prior; return None, after a warning, if it is damaged.

    >>> from restore.zoo import find
    >>> readable(find("tap-mnist")).image_shape
    (28, 28)
    """
    try:
        return describe(folder)
    except ModelError as fault:
        leave_out(str(fault))
        return None
