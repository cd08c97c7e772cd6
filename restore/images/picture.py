"""The results of reading: a grey picture at the depth of its file, and a mask of the pixels to fill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.errors import InputError, UsageError, shown


@dataclass(frozen=True, eq=False)
class Picture:
    """A grey image, with its levels kept as integers so that untouched pixels can be written back bit for bit.

    Attributes:
        levels: grey levels, (H, W), uint8 or uint16; 0 is black and `white` is white.
        alpha: opacity, (H, W), in the type of `levels`; None if the file has none. It is never multiplied in.
        notes: the conversions made while reading, one sentence each, without the name of the file.
    """

    levels: np.ndarray
    alpha: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def white(self) -> int:
        """The level of white: 255 or 65535."""
        return int(np.iinfo(self.levels.dtype).max)

    @property
    def pixels(self) -> np.ndarray:
        """The grey values, (H, W), float64 in [0, 1]."""
        return self.levels / np.float64(self.white)

    def lazily(self) -> Greys:
        """The same, part by part: as a whole they take eight times the memory of the levels."""
        return Greys(self)


@dataclass(frozen=True, eq=False)
class Greys:
    """The grey values of a picture, as an array of which parts are taken."""

    picture: Picture

    @property
    def shape(self) -> tuple[int, ...]:
        return self.picture.levels.shape

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        return Picture(self.picture.levels[where]).pixels


@dataclass(frozen=True, eq=False)
class Mask:
    """Which pixels of a picture to fill.

    Attributes:
        hidden: (H, W), bool, True (white in the file) where the pixel is to be filled.
        notes: what the user should know about reading the mask, one sentence each.
    """

    hidden: np.ndarray
    notes: tuple[str, ...] = ()


def plain(values: np.ndarray) -> np.ndarray:
    """An array without its subclass; raises UsageError if that is a mask, which would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise UsageError(
            "a masked array is not an image, as its mask would be lost; give array.filled(0), and its mask as the mask "
            "of restore.complete if it says what to fill"
        )
    return np.asarray(values)


def check_unit_range(values: np.ndarray, *, name: str, beyond: float = 0.0) -> None:
    """Check that all floating-point grey values are finite, and at most `beyond` outside [0, 1].

    Raises:
        InputError: for the first fault found, naming the range.
    """
    if not np.isfinite(values).all():
        raise InputError(f"{shown(name)}: holds NaN or infinite values; replace them by numbers in [0, 1]")
    if ((values < -beyond) | (values > 1 + beyond)).any():
        span = f"{values.min():g} to {values.max():g}"
        raise InputError(
            f"{shown(name)}: holds values from {span}, outside [{0 - beyond:g}, {1 + beyond:g}]; scale them to [0, 1]"
        )
