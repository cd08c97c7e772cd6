"""Sizes of pictures: which may be resized, and how they are written."""

from __future__ import annotations

from typing import Literal

from restore.errors import ModelError, option

Fit = Literal["tile", "resize"]

# The most pixels of one picture, unless more are granted.
DEFAULT_MAX_PIXELS = 50_000_000

# Without force, a side may become this many times longer or shorter.
FURTHEST = 2.0


def check_near(shape: tuple[int, ...], wanted: tuple[int, int]) -> None:
    """Refuse to resize a picture that would lose too much by it.

    Args:
        shape, wanted: height and width of the picture, and of the prior.

    Raises:
        ModelError: if the picture is refused.
    """
    if not near(shape, wanted):
        far = f"{size_text(shape)} pixels are too far from {size_text(wanted)} to resize"
        raise ModelError(f"{far}; leave {option('fit')} out for tiles")


def near(shape: tuple[int, ...], wanted: tuple[int, int]) -> bool:
    """True if resizing changes no side by more than `FURTHEST`, either way."""
    return all(max(old, new) <= FURTHEST * min(old, new) for old, new in zip(shape, wanted, strict=True))


def size_text(shape: tuple[int, ...]) -> str:
    """A size as users write it, width x height.

    >>> size_text((20, 30))
    '30x20'
    """
    return "x".join(str(length) for length in reversed(shape))
