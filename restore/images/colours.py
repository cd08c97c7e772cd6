"""Take grey levels from pictures that are black and white, or grey, but for what they are painted with.

Three kinds are understood: colours that are nearly grey, two colours with their mixtures, and a shape in alpha alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from restore.errors import ModelError
from restore.images.picture import Inks, Picture
from restore.images.raster import Raster, spread

# All is judged by the mean colours of small areas: compression and scanners move the colour of single pixels, but of no
# area. Their side, and how many lie along the shorter side of a small picture.
SIDE = 8
SMALLEST = 16

# By how many of 255 levels the bands of nearly grey areas differ.
TINT = 24

# How far, as a share of the distance between two inks, areas of their mixtures may lie off the line between them; the
# least share of the rarer ink that can be judged, and that counts; and the share of areas that may differ.
OFF = 0.15
FAINT, BARE = 0.25, 0.04
FOREIGN = 0.0005
# In pictures of two inks at most this share of the pixels lies in the middle half between them; more do in photographs.
BETWEEN = 0.2
# The share of the pixels of one ink that have the very same colour if it is flat.
FLAT = 0.25

# A pixel whose difference to another shows by more levels than this, once its alpha hides what it hides, differs.
ALIKE = 2

# Paper whose weakest band has more than this share of its strongest one is taken for white; and its bands if it is.
PALE = 0.6
WHITE = np.ones(3)

LUMINANCE = np.array([0.299, 0.587, 0.114])

# More pixels than this say nothing new of the inks.
ENOUGH = 2**16


def picture_of(raster: Raster, label: str, *, colour: bool = False, hidden: np.ndarray | None = None) -> Picture:
    """The grey levels of the pixels of a file, and what they are painted with.

    Args:
        raster: the pixels.
        label: the file's name for messages.
        colour: whether other colours are kept, in levels (H, W, 3), instead of refused.
        hidden: pixels whose colours count for nothing, boolean (H, W).

    Raises:
        ModelError: if they are in other colours.
    """
    if raster.shallow:
        raise ModelError(
            f"{label}: is in 16-bit colour, which is not read; convert a copy of it to 16-bit greyscale first"
        )
    cut = _cut_out(raster)
    if cut is not None:
        return cut
    if raster.levels.ndim == 2:
        return Picture(raster.levels, raster.alpha, raster.notes, stored=raster.stored)
    seen = _seen(raster.levels, raster.alpha, hidden)
    if _nearly_grey(seen):
        notes = raster.notes
        if spread(seen).any():
            notes = (*notes, "its colours are nearly grey, and come back as greys")
        return _of_greys(raster, notes)
    inked = _Inked.of(seen)
    share = inked.shares(seen)
    if not inked.explains(seen, share):
        paper = inked.ground / inked.ground.max().clip(1)
        if paper.min() > PALE and _nearly_grey(_balanced(seen, paper)):
            return _of_greys(raster, (*raster.notes, "it is on paper of one hue, which comes back"), paper)
        if colour:
            return Picture(raster.levels, raster.alpha, raster.notes, stored=raster.stored)
        raise ModelError(
            f"{label}: is in colour, and what is restored here is in black and white, in grey, or in two colours; if "
            "it is a photograph with noise, give --sigma, or else convert a copy of it to greyscale first"
        )
    dark = float((inked.ink - inked.ground) @ LUMINANCE) < 0
    levels = np.rint(255 * (1 - share if dark else share)).astype(np.uint8)
    inks = Inks(raster.levels, *((inked.ink, inked.ground) if dark else (inked.ground, inked.ink)))
    note = "its two colours are taken for black and white, and come back"
    return Picture(levels, raster.alpha, (*raster.notes, note), inks, raster.stored)


def _of_greys(raster: Raster, notes: tuple[str, ...], paper: np.ndarray = WHITE) -> Picture:
    """A picture whose colours are greys, but for the hue of its paper."""
    levels = np.asarray(Image.fromarray(_balanced(raster.levels, paper)).convert("L"))
    inks = Inks(raster.levels, np.zeros(3), 255 * paper)
    return Picture(levels, raster.alpha, notes, inks, raster.stored)


def _balanced(colour: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """The colours (H, W, 3) as they would be on white paper."""
    return colour if paper is WHITE else np.rint((colour / paper).clip(0, 255)).astype(np.uint8)


def _cut_out(raster: Raster) -> Picture | None:
    """A picture whose shape is in its alpha alone, as of an icon: its levels are the opacity; else None."""
    if raster.alpha is None or raster.alpha.min() == raster.alpha.max():
        return None
    colour = raster.levels if raster.levels.ndim == 3 else raster.levels[..., None]
    white = np.iinfo(raster.alpha.dtype).max
    plain = np.median(colour[raster.alpha == raster.alpha.max()], axis=0)
    # Two pictures are one if nobody sees a difference; colours that are hidden, or nearly, are rounded by programs.
    shows = np.abs(colour - plain).max(axis=-1) * (raster.alpha / np.float64(white))
    if shows.max() > ALIKE * (white // 255):
        return None
    inks = Inks(np.dstack([colour, raster.alpha]), np.append(plain, 0.0), np.append(plain, float(white)))
    note = "its shape is in its transparency, which is restored: opaque is white"
    return Picture(raster.alpha, None, (*raster.notes, note), inks, raster.stored)


def _seen(colour: np.ndarray, alpha: np.ndarray | None, hidden: np.ndarray | None) -> np.ndarray:
    """The colours, with pixels that are hidden or wholly transparent in the commonest colour of the others."""
    shows = np.ones(colour.shape[:2], bool) if alpha is None else alpha > 0
    shows = shows if hidden is None else shows & ~hidden
    if shows.all() or not shows.any():
        return colour
    visible = colour[shows]
    return np.where(shows[..., None], colour, _commonest(visible[:: 1 + len(visible) // ENOUGH]).astype(np.uint8))


def _areas(colour: np.ndarray) -> np.ndarray:
    """The mean colours of small areas, (h, w, 3)."""
    side = int(np.clip(min(colour.shape[:2]) // SMALLEST, 1, SIDE))
    return np.asarray(Image.fromarray(colour).reduce(side))


def _nearly_grey(colour: np.ndarray) -> bool:
    return bool(spread(_areas(colour)).max() <= TINT)


@dataclass(frozen=True, eq=False)
class _Inked:
    """A ground of one colour with ink of another on it, each of three bands."""

    ground: np.ndarray
    ink: np.ndarray

    @classmethod
    def of(cls, colour: np.ndarray) -> _Inked:
        """The two colours of which all pixels (H, W, 3) may be mixtures; equal if there is but one."""
        step = 1 + int((colour[..., 0].size / ENOUGH) ** 0.5)
        pixels = colour[::step, ::step].reshape(-1, 3).astype(np.float64)
        _, axes = np.linalg.eigh(np.cov(pixels.T, ddof=0))
        along = pixels @ axes[:, -1]
        # Two means on the principal axis, from its ends, so that a rare ink is found too.
        low, high = along.min(), along.max()
        if low == high:
            return cls(pixels[0], pixels[0])
        for _ in range(20):
            upper = along > (low + high) / 2
            low, high = along[~upper].mean(), along[upper].mean()
        if upper.mean() > 0.5:
            upper, along = ~upper, -along
        ground, ink = _purest(pixels[~upper], -along[~upper]), _purest(pixels[upper], along[upper])
        if _is_flat(pixels[upper], ink):
            return cls(ground, ink)
        # Compression keeps how dark the ink of thin strokes is, and spreads its hue.
        shifts = _areas(colour).reshape(-1, 3) - ground
        _, axes = np.linalg.eigh(shifts.T @ shifts)
        return cls(ground, np.clip(ground + axes[:, -1] * (axes[:, -1] @ (ink - ground)), 0, 255))

    def shares(self, colour: np.ndarray) -> np.ndarray:
        """The share of ink in each pixel (H, W, 3), (H, W) in [0, 1]."""
        across = self.ink - self.ground
        along = (across / max(float(across @ across), 1.0)).astype(np.float32)
        # Band by band, which takes a third of the memory.
        share = np.full(colour.shape[:2], -float(self.ground @ along), np.float32)
        for band, weight in enumerate(along):
            share += colour[..., band] * weight
        return share.clip(0, 1, out=share)

    def explains(self, colour: np.ndarray, share: np.ndarray) -> bool:
        """Whether a picture (H, W, 3), with this share of ink, is of these two colours, mixed at soft edges."""
        if ((share > 0.25) & (share < 0.75)).mean() > BETWEEN:
            return False
        areas = _areas(colour).astype(np.float64)
        share = self.shares(areas)
        off = areas - self.ground - share[..., None] * (self.ink - self.ground)
        # A third colour shifts an area the more, the more of it there is.
        reach = OFF * np.linalg.norm(self.ink - self.ground) * share.clip(FAINT, 1)
        foreign = (np.linalg.norm(off, axis=-1) > reach).sum()
        return bool(foreign <= FOREIGN * (share > BARE).sum())


def _purest(pixels: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The colour of a class of pixels (N, 3): its commonest if it is flat, else that of its outer half, less mixed."""
    commonest = _commonest(pixels)
    if _is_flat(pixels, commonest):
        return commonest
    return np.asarray(np.median(pixels[along >= np.median(along)], axis=0))


def _commonest(pixels: np.ndarray) -> np.ndarray:
    """The commonest of some colours (N, 3)."""
    _, first, counts = np.unique(pixels @ (65536, 256, 1), return_index=True, return_counts=True)
    return np.asarray(pixels[first[counts.argmax()]])


def _is_flat(pixels: np.ndarray, colour: np.ndarray) -> bool:
    return bool((pixels == colour).all(axis=-1).mean() >= FLAT)
