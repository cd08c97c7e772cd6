"""Images of another size than a prior's: which of them may be resized, and what to do with the others."""

from __future__ import annotations

from typing import Literal, get_args

from restore.errors import ModelError, UsageError

Fit = Literal["tile", "resize"]

# Without force, a side of an image may be this many times longer or shorter than the prior's to be resized.
FURTHEST = 2.0


def check_size(shape: tuple[int, ...], wanted: tuple[int, int], *, fit: Fit, force: bool) -> None:
    """Refuse to resize an image that would lose too much by it.

    Args:
        shape, wanted: height and width of the image, and of the prior's images.
        fit: "tile" for windows of the prior's size, which suit every image, or "resize".
        force: resize any image.

    Raises:
        UsageError: if `fit` is neither of its values.
        ModelError: if the image is refused.
    """
    if fit not in get_args(Fit):
        raise UsageError(f"fit must be one of {', '.join(get_args(Fit))}, not {fit!r}")
    if fit == "resize" and not force and not near(shape, wanted):
        raise ModelError(
            f"the image has {said(shape)} pixels, too far from {said(wanted)} to resize it: little would be left; "
            "without --fit resize it is restored in windows"
        )


def near(shape: tuple[int, ...], wanted: tuple[int, int]) -> bool:
    """Whether resizing changes no side by more than `FURTHEST`, either way."""
    return all(max(old, new) <= FURTHEST * min(old, new) for old, new in zip(shape, wanted, strict=True))


def without_resizing(shape: tuple[int, ...], wanted: tuple[int, int]) -> str:
    """Advice for an image of a very different size than the prior's."""
    if all(old >= new for old, new in zip(shape, wanted, strict=True)):
        way = f"restore train FOLDER --patches 20000 --shape {wanted[0]}x{wanted[1]}"
        return f"it is too large to resize, so cut windows of {said(wanted)} out of it for a prior of that size ({way})"
    return "it is too far from that to resize, so train a prior on images of its size"


def lost_detail(wanted: tuple[int, int]) -> str:
    """The sentence for an image that was resized by force."""
    return f"was resized to {said(wanted)} pixels and back, so little detail is left"


def said(shape: tuple[int, ...]) -> str:
    """Write a size as users do: width x height."""
    return "x".join(str(length) for length in reversed(shape))


def in_windows(shape: tuple[int, ...], wanted: tuple[int, int], fit: Fit) -> bool:
    """Whether an image is restored in windows, instead of as a whole (resized, if it has another size).

    So is any image in colour, (H, W, 3).
    """
    return len(shape) > 2 or (fit == "tile" and shape != wanted)
