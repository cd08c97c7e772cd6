"""The results of reading: a picture at the depth of its file, and a mask of the pixels to fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from PIL import Image

from restore.errors import InputError, UsageError

# A picture of colours that are names, as of classes in a map, has no more than these; and a sample shows most of them.
_CLASSES, _SAMPLE = 16, 256
# Said of a picture of colours that is read as one of grey levels.
BY_LUMINANCE = "its colours are read by their luminance, and what changes becomes grey"
# Half a grey level of 8 bits: by less, resizing and other sums carry floats out of [0, 1].
HALF_LEVEL = 0.5 / 255


@dataclass(frozen=True, eq=False)
class Inks:
    """The pixels of a file, (H, W, C), and the two, (C,) each, that black and white stand for."""

    bands: np.ndarray
    dark: np.ndarray
    light: np.ndarray

    def painted(self, levels: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        """Paint levels (H, W) as pixels (H, W, C); the file's own outside of `where`, (H, W), or if both are clear."""
        share = np.linspace(0, 1, 256)[:, None]
        pixels = np.rint(self.dark + share * (self.light - self.dark)).astype(np.uint8)[levels]
        if where is not None:
            pixels[~where] = self.bands[~where]
        if pixels.shape[2] in (2, 4):
            clear = (pixels[..., -1] == 0) & (self.bands[..., -1] == 0)
            pixels[clear] = self.bands[clear]
        return pixels


@dataclass(frozen=True, eq=False)
class Indices:
    """The pixels of an indexed image, (H, W), the colours of its palette, (N, C), and a strip of 256 pixels with it."""

    pixels: np.ndarray
    colours: np.ndarray
    strip: Image.Image

    @classmethod
    def of(cls, image: Image.Image, channels: int) -> Indices:
        """The indices of an image of mode P, with its colours read as 1 to 4 channels."""
        strip = image.crop((0, 0, 256, 1))
        strip.putdata(range(256))
        # What else the file says is checked where it is kept.
        strip.info = {key: value for key, value in strip.info.items() if key == "transparency"}
        size = len(image.getpalette() or ()) // 3
        colours = np.asarray(strip.convert("RGBA"))[0, :size]
        chosen = {1: [1], 2: [1, 3], 3: [0, 1, 2], 4: [0, 1, 2, 3]}[channels]
        return cls(np.asarray(image), colours[:, chosen], strip)

    def image_of(self, pixels: np.ndarray) -> Image.Image | None:
        """An indexed image of pixels (H, W, C), the index of each old colour kept; None if the palette lacks one."""
        weights = 256 ** np.arange(pixels.shape[2], dtype=np.uint32)
        palette = self.colours @ weights
        wanted = pixels @ weights
        counts = np.bincount(self.pixels.ravel(), minlength=256)[: len(palette)]
        indices = self.pixels.copy()
        changed = palette[np.minimum(indices, len(palette) - 1)] != wanted
        for colour in np.unique(wanted[changed]).tolist():
            # Several entries may have one colour: the one that the image uses most is meant.
            (same,) = np.nonzero(palette == colour)
            if not same.size:
                return None
            indices[changed & (wanted == colour)] = same[counts[same].argmax()]
        image = self.strip.resize(indices.shape[::-1])
        image.frombytes(indices.tobytes())
        return image


@dataclass(frozen=True, eq=False)
class Picture:
    """An image whose levels stay integers, so that pixels that are not restored are written back bit for bit.

    Attributes:
        levels: (H, W), or (H, W, 3) in colour; uint8 or uint16, 0 is black and `white` is white.
        alpha: opacity, (H, W), in the type of `levels`; None if the file has none. It is never multiplied in.
        notes: the conversions made while reading, one sentence each, without the name of the file.
        inks: what the levels stand for; None if they are grey.
        bits: True if the file has one bit for each pixel.
        indices: of an indexed file; None for others.
        one_of_many: True if its file holds others, too.
        info: what else its result keeps if its format can. In Pillow's words: the resolution `dpi`, the colour profile
            `icc_profile`, `exif`, `xmp`; and other `tags` of a TIFF and `chunks` of a PNG.
    """

    levels: np.ndarray
    alpha: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    inks: Inks | None = None
    bits: bool = False
    indices: Indices | None = None
    one_of_many: bool = False
    info: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def white(self) -> int:
        """The level of white: 255 or 65535."""
        return int(np.iinfo(self.levels.dtype).max)

    @property
    def mode(self) -> str:
        """The mode in which Pillow holds the result: L, LA, RGB, RGBA or I;16."""
        bands = self.levels if self.inks is None else self.inks.bands
        count = (1 if bands.ndim == 2 else bands.shape[-1]) + (self.alpha is not None)
        return "I;16" if self.white > 255 else ("L", "LA", "RGB", "RGBA")[count - 1]

    @property
    def pixels(self) -> np.ndarray:
        """The levels as float64 in [0, 1]."""
        return self.levels / np.float64(self.white)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.levels.shape

    @property
    def colours(self) -> np.ndarray | None:
        """The colours (H, W, 3) whose luminance the levels are; None if they are grey, or stand for two colours."""
        return self.inks.bands[..., :3] if self.inks is not None and BY_LUMINANCE in self.notes else None

    @property
    def classes(self) -> bool:
        """True if it has few colours, not all grey, or few low levels, as of classes in a map: they have no order."""
        if self.inks is None:  # numbers of classes, which are black to the eye
            return 1 < self.levels.max() < _CLASSES and len(np.unique(self.levels)) > 2
        if self.inks.bands.shape[2] not in (3, 4):
            return False
        codes = self.inks.bands[..., :3] @ (256 ** np.arange(3, dtype=np.uint32))
        rows, columns = (-(-size // _SAMPLE) for size in codes.shape)
        few = len(np.unique(codes[::rows, ::columns])) <= _CLASSES
        return few and 2 < len(colours := np.unique(codes)) <= _CLASSES and bool((colours % 0x010101).any())

    @property
    def as_mask(self) -> Picture:
        """This picture, black where it is transparent; black and white if its levels are 0 and 1, as of booleans."""
        levels = self.levels
        kind = self.levels.dtype
        levels = levels * kind.type(self.white) if levels.max() == 1 else levels
        levels = levels if self.alpha is None else (levels * (self.alpha / self.white)).astype(kind)
        return replace(self, levels=levels)

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        """A part of the pixels: as a whole they take eight times the memory of the levels."""
        return self.levels[where] / np.float64(self.white)

    def lighter(self, threshold: float, where: tuple[slice, slice]) -> np.ndarray:
        """True where a part of the pixels is above a threshold, boolean (h, w), without making numbers of them."""
        return np.asarray((np.arange(self.white + 1) / np.float64(self.white) > threshold)[self.levels[where]])


def plain(values: np.ndarray) -> np.ndarray:
    """An array without its subclass; raises UsageError if that is a masked array, whose mask would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise UsageError("a masked array is not an image, as its mask would be lost; give array.filled(0)")
    return np.asarray(values)


def check_unit_range(values: np.ndarray, *, name: str, beyond: float = 0.0) -> None:
    """Raise InputError if values are not finite, or lie more than `beyond` and a rounding error outside [0, 1]."""
    if not np.isfinite(values).all():
        raise InputError("holds NaN or infinite values; replace them by numbers in [0, 1]", name)
    if values.size and max(-values.min(), values.max() - 1) > beyond + HALF_LEVEL:
        span = f"{values.min():g} to {values.max():g}"
        allowed = f"[{0 - beyond:g}, {1 + beyond:g}]"
        raise InputError(f"holds values from {span}, outside {allowed}; scale them to [0, 1]", name)
