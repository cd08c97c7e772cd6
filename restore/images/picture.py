"""The results of reading: a grey picture at the depth of its file, and a mask of the pixels to fill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.errors import InputError, UsageError, shown


@dataclass(frozen=True, eq=False)
class Inks:
    """What the grey levels of a picture are painted with, if not with grey.

    Attributes:
        bands: the pixels as they came, (H, W, C): grey and alpha, red, green and blue, or these and alpha.
        dark, light: a pixel of level 0, and one of white, (C,).
    """

    bands: np.ndarray
    dark: np.ndarray
    light: np.ndarray

    def painted(self, levels: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        """The pixels (H, W, C) of levels (H, W); outside of `where`, (H, W), the pixels as they came."""
        share = np.linspace(0, 1, np.iinfo(levels.dtype).max + 1)[:, None]
        table = np.rint(self.dark + share * (self.light - self.dark)).astype(self.bands.dtype)
        pixels = table[levels]
        if where is not None:
            pixels[~where] = self.bands[~where]
        return pixels


@dataclass(frozen=True)
class Stored:
    """How a file stores its pixels, so that its result can be stored alike.

    Attributes:
        bits: whether with one bit each.
        dpi: pixels per inch, horizontally and vertically; None if unknown.
        compression: that of a TIFF, in Pillow's words; empty for other files.
    """

    bits: bool = False
    dpi: tuple[float, float] | None = None
    compression: str = ""


UNKNOWN = Stored()


@dataclass(frozen=True, eq=False)
class Picture:
    """A grey image, with its levels kept as integers so that untouched pixels can be written back bit for bit.

    Attributes:
        levels: grey levels, (H, W), uint8 or uint16; 0 is black and `white` is white. Of a picture that was read in
            colour, (H, W, 3).
        alpha: opacity, (H, W), in the type of `levels`; None if the file has none. It is never multiplied in.
        notes: the conversions made while reading, one sentence each, without the name of the file.
        inks: the colours, or the opacity, that the levels stand for; None if they are grey.
        stored: how the file stores it.
    """

    levels: np.ndarray
    alpha: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    inks: Inks | None = None
    stored: Stored = UNKNOWN

    @property
    def white(self) -> int:
        """The level of white: 255 or 65535."""
        return int(np.iinfo(self.levels.dtype).max)

    @property
    def mode(self) -> str:
        """The bands of the file and their depth, as Pillow names them: L, LA, RGB, RGBA, I;16; it lacks LA;16."""
        colours = self.levels if self.inks is None else self.inks.bands
        bands = (1 if colours.ndim == 2 else colours.shape[-1]) + (self.alpha is not None)
        names = ("L", "LA", "RGB", "RGBA") if self.white == 255 else ("I;16", "LA;16")
        return names[bands - 1]

    @property
    def pixels(self) -> np.ndarray:
        """The grey values, (H, W), or those of the colours, (H, W, 3); float64 in [0, 1]."""
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


# Half a grey level of 8 bits: by less, resizing and other sums carry floats out of [0, 1].
ROUNDED = 0.5 / 255


def check_unit_range(values: np.ndarray, *, name: str, beyond: float = 0.0) -> None:
    """Check that all floating-point grey values are finite, and at most `beyond` outside [0, 1] beside rounding.

    Raises:
        InputError: for the first fault found, naming the range.
    """
    if not np.isfinite(values).all():
        raise InputError(f"{shown(name)}: holds NaN or infinite values; replace them by numbers in [0, 1]")
    allowed = beyond + ROUNDED
    if ((values < -allowed) | (values > 1 + allowed)).any():
        span = f"{values.min():g} to {values.max():g}"
        raise InputError(
            f"{shown(name)}: holds values from {span}, outside [{0 - beyond:g}, {1 + beyond:g}]; scale them to [0, 1]"
        )
