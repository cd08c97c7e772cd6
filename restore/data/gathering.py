"""`gather`: turn a user's images into training images and held-out images."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Dataset, Images, checked
from restore.data.fitting import commonest, drawn, patches, resized, spread
from restore.data.loading import open_stock
from restore.data.stock import Limits, Stock, of_arrays, paired
from restore.data.truth import joined, planes
from restore.errors import TrainingError, option, require, some
from restore.images import check_together
from restore.images.tones import THIRD, Tones, counted, third_tone
from restore.sizes import size_text

Levels: TypeAlias = Literal["binary", "grey", "pairs"]
Source: TypeAlias = str | Path | NDArray[Any] | Sequence[NDArray[Any]]

# The most pixels of an image for a machine with a weight for every pixel and hidden unit.
MAX_PIXELS = 128 * 128
# Images with larger sides are learnt in random windows unless a shape is given: the limit, number and side of windows.
LARGE_SIDE = 40
WINDOWS = 1000
WINDOW_SIDE = 32
# The minimum number of images for a split by file.
FEWEST = 3
# Images in the sample that tells black and white from grey.
SAMPLE = 1000


@dataclass(frozen=True)
class Gathering:
    """Settings for gathering images at one size and holding some out; [data.gathering] of a recipe.

    Attributes:
        levels: kind of pixels; "auto" lets `restore.images.tones` decide between black and white and grey. "pairs"
            are grey pages with their truth (`restore.data.stock.paired`). "" gathers nothing: a recipe then uses images
            as they are read.
        shape: height and width of training images; others are resized to it by averaging over area; by default the
            images' own, or the most common of several; where these have sides beyond `LARGE_SIDE`, windows of them.
        patches: 0, or the number of random patches of `shape` to learn from, spread evenly over files; the held-out
            files give the share `held_out` of that number.
        held_out: share of the images to hold out; at least one is held out, and at least two are not.
        stretched: of pairs: give pages the contrast at which `restore` reads them; False for a prior that sees them as
            they are.

    Raises:
        UsageError: if a setting is out of its range, or patches are asked for without their shape.
    """

    levels: Literal["auto", "", "binary", "grey", "pairs"] = "auto"
    shape: tuple[int, ...] = ()
    patches: int = 0
    held_out: float = 0.1
    stretched: bool = True

    def __post_init__(self) -> None:
        require(
            not self.shape or (len(self.shape) == 2 and min(self.shape) >= 1),
            f"shape is height and width, such as (28, 28), not {self.shape}",
        )
        kinds = ("auto", *get_args(Levels))
        require(self.levels in ("", *kinds), f"levels must be one of {', '.join(kinds)}, not {self.levels!r}")
        require(
            (not self.patches or bool(self.shape)) and self.patches >= 0 and self.patches != 1,
            f"patches must be 0, or 2 and more of a shape such as 16x16, not {self.patches}",
        )
        require(0 < self.held_out < 1, f"held_out is a share of the files, in (0, 1), not {self.held_out}")
        unset = (self.shape, self.patches, self.held_out) == ((), 0, 0.1)
        require(bool(self.levels) or unset, 'levels is missing; give "binary" or "grey"')


@dataclass(frozen=True, eq=False)
class Gathered:
    """Training images and held-out images, from different files.

    Attributes:
        training: (N, H, W), at least two.
        held_out: (M, H, W), at least one.
        levels: a kind of pixels, as detected or as set.
        threshold: 0 to 254; a pixel above it is white.
        patches: as in `Gathering`, or the chosen number.
        notes: a sentence for everything a user should know: files skipped, how sizes were made equal, how the files
            were split, repetitions across the split, levels and polarity. They include those of `training`.
    """

    training: Dataset
    held_out: Dataset
    levels: Levels
    threshold: int
    patches: int = 0
    notes: tuple[str, ...] = ()


def _stock(source: Source, gathering: Gathering, limits: Limits) -> Stock:
    """The images of a source; raises TrainingError if they are too few."""
    if isinstance(source, str | os.PathLike):
        stock = open_stock(source, limits=limits)
    else:
        stock = of_arrays(source, "the images")
    if gathering.levels == "pairs":
        stock = paired(stock, stretch=gathering.stretched)
    if not len(stock.images) or not stock.sizes.all():
        raise TrainingError("the data set is empty; give it some images", stock.label)
    if len(stock.images) < FEWEST:
        fault = f"holds {len(stock.images)} images; training takes at least {FEWEST}, including one to hold out"
        raise TrainingError(f"{fault}; add some, or cut large ones into parts", stock.label)
    return stock


def gather(
    source: Source,
    gathering: Gathering = Gathering(),
    *,
    seed: int = 0,
    limits: Limits = Limits(),  # noqa: B008
) -> Gathered:
    """Gather the images of a source, at one size, split by file.

    The split comes first. It depends on the names of files within their folder or archive (`held_out_of`), or on the
    numbers of rows. A held-out image equal to a training image is left out and reported, so that scores are of images
    never seen. A source's own test images (a folder test next to a folder train, the test split of a named set) are
    not used.

    Args:
        source: what `restore.data.load` takes; an array (N, H, W); or arrays (H, W) of any sizes. Arrays are uint8,
            bool, or floats in [0, 1].
        gathering: how they are gathered.
        seed: of the split and the patches, at least 0.
        limits: what may be read; the gathered images count, too.

    Raises:
        InputError: if the source does not exist, is not a data set, has too many pixels, or is a damaged or dangerous
            archive.
        TrainingError: if there are fewer than three images, more than `max_bad` are unusable, they
            are too large to learn, too small for patches, or have a single grey level.

    >>> stripes = np.tile(np.arange(8) % 2 == 0, (10, 8, 1)) ^ (np.arange(10) < 5)[:, None, None]
    >>> gathered = gather(stripes, Gathering(shape=(4, 4), patches=20, held_out=0.3))
    >>> gathered.training.images.shape[1:], gathered.levels, gathered.threshold
    ((4, 4), 'binary', 127)
    """
    require(bool(gathering.levels), "levels is missing; give auto, binary or grey")
    require(seed >= 0, f"the seed must not be negative, not {seed}")
    stock = _stock(source, gathering, limits)
    gathering, chosen_notes = _in_windows(stock, gathering)
    size, size_notes = _size_for(stock, gathering)
    held = held_out_of(stock.names, gathering.held_out, seed)
    pieces, owner = _pieces(stock, size, gathering, held, seed, limits.max_pixels)
    kept, twin_notes = _without_twins(stock, held)
    training = checked(pieces[~held[owner]], stock.label, "train")
    levels, threshold, level_notes = _levels_of(stock, training.images, gathering.levels)
    notes = (
        *stock.notes,
        *size_notes,
        *chosen_notes,
        f"{held.sum()} of {len(held)} images are held out, by their names and seed {seed}",
        *twin_notes,
        *level_notes,
        *training.notes,
    )
    held_out = Dataset(pieces[kept[owner]], stock.label, "test")
    return Gathered(training, held_out, levels, threshold, gathering.patches, notes)


def _in_windows(stock: Stock, gathering: Gathering) -> tuple[Gathering, tuple[str, ...]]:
    """Set windows for images that are too large to learn whole, unless the caller has set them, with a note."""
    if gathering.shape or min(commonest(stock.sizes)) <= LARGE_SIDE or stock.sizes.min() < WINDOW_SIDE:
        return gathering, ()
    shape = (WINDOW_SIDE, WINDOW_SIDE)
    note = f"images larger than {LARGE_SIDE} pixels are learnt in {WINDOWS} windows of {size_text(shape)} pixels"
    return replace(gathering, shape=shape, patches=WINDOWS), (note,)


def _size_for(stock: Stock, gathering: Gathering) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Height and width of the images to learn from, and a note on images of another size."""
    size = (gathering.shape[0], gathering.shape[1]) if gathering.shape else commonest(stock.sizes)
    if size[0] * size[1] > MAX_PIXELS:
        smaller = f"give a smaller {option('shape')}, or learn from parts of them with {option('patches')}"
        raise TrainingError(f"images of {size_text(size)} pixels are too large to learn; {smaller}", stock.label)
    small = np.flatnonzero((stock.sizes < size).any(axis=1))
    if len(small) and gathering.patches:
        names = some(stock.names[number] for number in small)
        fault = f"{len(small)} images are smaller than {size_text(size)} ({names})"
        raise TrainingError(f"{fault}; remove them or give a smaller {option('shape')}", stock.label)
    other = int((stock.sizes != size).any(axis=1).sum())
    if gathering.patches or not other:
        return size, ()
    chosen = "" if gathering.shape else ", the most common size"
    return size, (
        f"{other} of {len(stock.images)} images are not of {size_text(size)} pixels{chosen}, and are resized",
    )


def _pieces(
    stock: Stock,
    size: tuple[int, int],
    gathering: Gathering,
    held: NDArray[np.bool_],
    seed: int,
    max_pixels: int,
) -> tuple[Images, NDArray[np.intp]]:
    """Images at one size, or their patches, (P, *size), and the number of the image of each, (P,)."""
    quotas = np.ones(len(held), dtype=np.intp)
    if gathering.patches:
        kept_back = max(1, round(gathering.patches * gathering.held_out))
        quotas = spread(gathering.patches, ~held, seed) + spread(kept_back, held, seed)
    check_together(int(quotas.sum()) * size[0] * size[1], stock.label, max_pixels)
    pieces = np.empty((quotas.sum(), *size), dtype=np.uint8)
    ends = np.cumsum(quotas)[:-1]
    places = np.split(drawn(quotas, stock.sizes, size, seed), ends) if gathering.patches else [None] * len(held)
    for image, part, corners in zip(stock.images, np.split(pieces, ends), places, strict=True):
        if len(part) and corners is None and gathering.levels == "pairs":
            page, truth = (resized(plane, size) for plane in planes(image))
            part[:] = joined(page, truth)
        elif len(part):
            part[:] = resized(image, size) if corners is None else patches(image, corners, size)
    return pieces, np.repeat(np.arange(len(held)), quotas)


def _without_twins(stock: Stock, held: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """The held-out images that equal no training image, or all of them if none is left, with a note."""
    content = [(image.shape, hashlib.sha256(image.tobytes()).digest()) for image in stock.images]
    learnt = {known for known, is_held in zip(content, held, strict=True) if not is_held}
    twins = np.array([known in learnt for known in content]) & held
    if not twins.any():
        return held, ()
    note = f"{twins.sum()} of {held.sum()} held-out images are also learnt from"
    if twins.sum() == held.sum():
        return held, (f"{note}: all of them, so that no score tells how well new images are restored",)
    return held & ~twins, (f"{note} and are left out",)


def _levels_of(
    stock: Stock, training: Images, levels: Levels | Literal["auto", ""]
) -> tuple[Levels, int, tuple[str, ...]]:
    """Levels and threshold of the training images, detected before resizing.

    Images are grey if they are grey together, or if most have a third tone, which restoring in black and white refuses.
    """
    counts = counted(training)
    if np.count_nonzero(counts) < 2:
        raise TrainingError(
            "all pixels to learn from have the same grey level; give images that show something", stock.label
        )
    threshold = Tones.of(counts).threshold
    if levels != "auto" and levels != "":
        return levels, threshold, ()
    tones = Tones.of(np.sum([counted(image) for image in stock.images], axis=0))
    sample = stock.images[:: 1 + len(stock.images) // SAMPLE]
    toned = np.mean([third_tone(image / 255, (tones.threshold + 0.5) / 255) > THIRD for image in sample])
    facts = f"{tones.middle:.1%} of the pixels are neither dark nor light, {toned:.0%} of the images have a third tone"
    if tones.binary and toned <= 0.5:
        other = f"{option('levels', 'grey')} learns grey levels"
        return "binary", threshold, (f"taken for black and white, cut at level {threshold}: {facts}; {other}",)
    return "grey", threshold, (f"taken for grey: {facts}; {option('levels', 'binary')} cuts at level {threshold}",)


def held_out_of(names: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    """Choose held-out images by name, (N,), so that each stays when others are added; there are at least three.

    An image is held out if the first 64 bits of the SHA-256 of seed and name, as a fraction, are below the share. If
    none is, the lowest is held out; the two highest never are.
    """
    digests = (hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest() for name in names)
    values = np.frombuffer(b"".join(digest[:8] for digest in digests), dtype=">u8")
    order = np.argsort(values, kind="stable")
    held = values < np.uint64(share * 2.0**64)
    held[order[0]] = True
    held[order[-2:]] = False
    return held
