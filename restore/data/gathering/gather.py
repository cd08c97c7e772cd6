"""`gather`: turn a user's images, wherever they are, into images to learn from and images to be judged by."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Dataset, Images, as_grey, checked
from restore.data.gathering.fitting import commonest, cropped, drawn, resized, spread
from restore.data.gathering.holding_out import held_out_of
from restore.data.gathering.levels import Levels, counted_levels, extremes, on_light_ground, threshold_of
from restore.data.gathering.near_duplicates import SIDE, nearly_same, thumbnails
from restore.data.gathering.pictures import some
from restore.data.gathering.stock import Batch, Stock, of_arrays, of_rows, quartered, some_of
from restore.data.loading import open_stock
from restore.errors import InputError, TrainingError, UsageError, shown
from restore.images import DEFAULT_MAX_PIXELS, check_together, plain
from restore.sizes import near

Fit: TypeAlias = Literal["error", "crop", "resize"]

# The most pixels that a machine with a weight for every pixel and hidden unit can be expected to learn.
MAX_PIXELS = 128 * 128

_PAIRS_SHOWN = 3


@dataclass(frozen=True)
class Wanted:
    """How images are gathered.

    Attributes:
        shape: height and width of the images to learn from; by default the images' own, or the most common of several;
            where these have sides beyond `LARGE`, windows of them.
        fit: what to do with images of another size: raise an error, take their middle ("crop"), or average over the
            area of each new pixel ("resize").
        patches: 0, or how many random patches of `shape` to learn from, equally many from each file; the held-out files
            give the share `held_out` of that number.
        levels: "auto" takes images as black and white if nine pixels of ten are near black or near white.
        held_out: share of the images to hold out; at least one is held out, and at least two are not.
        seed: seed of the split and the patches.

    Raises:
        UsageError: if a setting is out of its range, or patches are asked for without their shape.
    """

    shape: tuple[int, int] | None = None
    fit: Fit = "resize"
    patches: int = 0
    levels: Literal["auto", "binary", "grey"] = "auto"
    held_out: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shape is not None and min(self.shape) < 1:
            raise UsageError(f"the shape {_said(self.shape)} has no pixels; give height and width, such as 28x28")
        if self.fit not in get_args(Fit):
            raise UsageError(f"fit must be one of {', '.join(get_args(Fit))}, not {self.fit!r}")
        if self.levels not in ("auto", *get_args(Levels)):
            raise UsageError(f"levels must be one of auto, {', '.join(get_args(Levels))}, not {self.levels!r}")
        if self.patches and self.shape is None:
            raise UsageError("patches need a shape; give it with --shape, such as --shape 16x16")
        if self.patches < 0 or self.patches == 1:
            raise UsageError(f"patches must be 0, or 2 and more to learn from, not {self.patches}")
        if not 0 < self.held_out < 1:
            raise UsageError(f"the share held out must lie between 0 and 1, not {self.held_out}")
        if self.seed < 0:
            raise UsageError(f"the seed must not be negative, not {self.seed}")


USUAL = Wanted()

# Images with sides beyond this are learnt in random windows unless a shape is given: so many, with such sides.
LARGE, WINDOWS, WINDOW = 40, 1000, 32

# Images are split by file, unless there are fewer and each is large.
FEWEST = 3

# How many whole images are held out beside patches.
WHOLES = 2


@dataclass(frozen=True, eq=False)
class Gathered:
    """Images to learn from and images to be judged by, from different files.

    Attributes:
        training: (N, H, W), at least two.
        held_out: (M, H, W), at least one.
        levels: whether they are black and white, or grey: as detected, or as asked for.
        threshold: 0 to 254; a pixel above it is white.
        patches: as in `Wanted`, or how many were chosen.
        wholes: where patches were drawn, the first images of which none was learnt from, (H, W) each; else none.
        notes: a sentence for everything a user should know: files skipped, how sizes were made equal, how the files
            were split, near-duplicates across the split, levels and polarity. They include those of `training`.
    """

    training: Dataset
    held_out: Dataset
    levels: Levels
    threshold: int
    patches: int = 0
    wholes: tuple[Images, ...] = ()
    notes: tuple[str, ...] = ()


def gather(
    source: str | Path | NDArray[Any] | Sequence[NDArray[Any]],
    wanted: Wanted = USUAL,
    *,
    root: Path | None = None,
    max_bad: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Gathered:
    """Gather the images of a source, at one size, split by file.

    The split comes first. It depends on the names of files within their folder or archive (`held_out_of`), or on the
    numbers of rows. A held-out image nearly the same as a training image (`nearly_same`) is left out and reported, so
    that scores are of images never seen. What a source has set aside for testing (a folder test beside a folder train,
    the test split of a named set) is not used.

    Args:
        source: what `restore.data.load` takes; an array (N, H, W); or arrays (H, W) of any sizes. Arrays are uint8,
            bool, or floats in [0, 1].
        wanted: how they are gathered.
        root, max_bad, max_pixels: as in `restore.data.load`; the gathered images count, too.

    Raises:
        InputError: if the source does not exist, is not a data set, has too many pixels, or is a damaged or dangerous
            archive.
        TrainingError: if there are fewer than three images and they are small, more than `max_bad` are unusable, their
            sizes differ beyond what `fit` allows, they are too large to learn, or have a single grey level.

    >>> stripes = np.tile(np.arange(8) % 2 == 0, (10, 8, 1)) ^ (np.arange(10) < 5)[:, None, None]
    >>> gathered = gather(stripes, Wanted(shape=(4, 4), fit="crop", held_out=0.3))
    >>> gathered.training.images.shape[1:], gathered.levels, gathered.threshold
    ((4, 4), 'binary', 127)
    """
    stock = _in_parts(_stock_of(source, root, max_bad, max_pixels), wanted)
    if len(stock.names) < FEWEST or not stock.sizes.all():
        raise _too_few(stock)
    wanted, chosen_notes = _in_windows(stock, wanted)
    held = held_out_of(stock.names, wanted.held_out, wanted.seed)
    size, size_notes = _size_for(stock, wanted)
    owner, shaped = _as_patches(stock, size, wanted, held) if wanted.patches else _as_wholes(stock, size, wanted.fit)
    check_together(len(owner) * size[0] * size[1], stock.label, max_pixels)
    pieces = np.empty((len(owner), *size), dtype=np.uint8)
    looks = np.empty((len(held), SIDE**2), dtype=np.float32)
    counts = np.zeros(256, dtype=np.int64)
    for batch in stock.batches():
        rows, found = shaped(batch)
        pieces[rows] = found
        looks[batch[0]] = thumbnails(batch[1])
        counts += counted_levels(batch[1])
    kept, twin_notes = _without_twins(stock, looks, held)
    training = checked(pieces[~held[owner]], stock.label, "train")
    threshold, found_levels, level_notes = _levels_of(training.images, counts, wanted.levels, stock.label)
    notes = (
        *stock.notes,
        *size_notes,
        *chosen_notes,
        f"{held.sum()} of {len(held)} images are held out, by their names and seed {wanted.seed}",
        *twin_notes,
        *level_notes,
        *training.notes,
    )
    wholes = some_of(stock, np.flatnonzero(kept)[:WHOLES]) if wanted.patches else ()
    held_out = Dataset(pieces[kept[owner]], stock.label, "test")
    return Gathered(training, held_out, found_levels, threshold, wanted.patches, wholes, notes)


def _stock_of(
    source: str | Path | NDArray[Any] | Sequence[NDArray[Any]], root: Path | None, max_bad: int, max_pixels: int
) -> Stock:
    if isinstance(source, str | os.PathLike):
        return open_stock(source, root=root, max_bad=max_bad, max_pixels=max_pixels)
    if not isinstance(source, np.ndarray):
        return of_arrays([plain(array) for array in source], "the images")
    if source.ndim != 3:
        raise InputError(f"the images have shape {source.shape}; give (N, H, W)")
    levels, notes = as_grey(plain(source), "the images")
    return of_rows(levels, "the images", notes)


def _in_parts(stock: Stock, wanted: Wanted) -> Stock:
    """The quarters of one or two large images, of which some can be held out; other images as they are."""
    whole = not wanted.patches and (wanted.shape is not None or wanted.fit == "crop")
    if whole or not 0 < len(stock.names) < FEWEST or stock.sizes.min() <= 2 * LARGE:
        return stock
    parts = quartered(stock)
    note = f"fewer than {FEWEST} images: each is cut into four, so that some of it can be held out"
    return replace(parts, notes=(*parts.notes, note))


def _in_windows(stock: Stock, wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """What is wanted of images too large to be learnt whole if nothing is said of it, and a note on that."""
    said = wanted.patches or wanted.shape or wanted.fit == "crop"
    if said or min(commonest(stock.sizes)) <= LARGE or stock.sizes.min() < WINDOW:
        return wanted, ()
    shape = (WINDOW, WINDOW)
    note = f"images larger than {LARGE} pixels are learnt in {WINDOWS} windows of {_said(shape)} pixels"
    return replace(wanted, shape=shape, patches=WINDOWS), (note,)


def _too_few(stock: Stock) -> TrainingError:
    if not len(stock.sizes) or not stock.sizes.all():
        return TrainingError(f"{stock.label}: the data set is empty; give it some images")
    many = "one image is" if len(stock.names) == 1 else "two images are"
    return TrainingError(
        f"{stock.label}: {many} not enough to train on; give at least three, two to learn from and one to hold out, "
        f"or one with sides of more than {2 * LARGE} pixels"
    )


def _size_for(stock: Stock, wanted: Wanted) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Height and width of the images to learn from, and a note on images of another size."""
    shape, fit, patches = wanted.shape, wanted.fit, wanted.patches
    size = shape or commonest(stock.sizes)
    if size[0] * size[1] > MAX_PIXELS:
        raise TrainingError(
            f"{stock.label}: images of {_said(size)} pixels are too large to learn; give a smaller --shape, such as "
            "--shape 28x28, or learn from parts of them with --patches"
        )
    if patches or fit == "crop":
        small = np.flatnonzero((stock.sizes < size).any(axis=1))
        if len(small):
            close = not patches and all(near(tuple(stock.sizes[number]), size) for number in small)
            remedy = "remove them or give a smaller --shape" + (", or use --fit resize" if close else "")
            raise TrainingError(
                f"{stock.label}: {len(small)} images are smaller than {_said(size)} "
                f"({some(stock.names[number] for number in small)}); {remedy}"
            )
    other = int((stock.sizes != size).any(axis=1).sum())
    if patches or not other:
        return size, ()
    sizes = {_said((height, width)) for height, width in stock.sizes.tolist()}
    if fit == "error":
        close = all(near(tuple(one), size) for one in stock.sizes.tolist())
        remedy = " or --fit resize" if close else ", or --patches to learn from parts of them"
        raise TrainingError(
            f"{stock.label}: {other} of {len(stock.sizes)} images are not of {_said(size)} pixels (height x width) "
            f"but of others ({some(sorted(sizes - {_said(size)}))}); use --fit crop{remedy}"
        )
    done = "cut down to its middle" if fit == "crop" else "resized to it"
    chosen = "" if shape else ", the most common size"
    return size, (f"{other} of {len(stock.sizes)} images are not of {_said(size)} pixels{chosen}, and are {done}",)


def _as_wholes(
    stock: Stock, size: tuple[int, int], fit: Fit
) -> tuple[NDArray[np.intp], Callable[[Batch], tuple[NDArray[np.intp], Images]]]:
    """The image of each piece, and a function from a batch to its pieces; here one piece per image."""
    shaped = cropped if fit == "crop" else resized
    return np.arange(len(stock.names)), lambda batch: (batch[0], shaped(batch[1], size))


def _as_patches(
    stock: Stock, size: tuple[int, int], wanted: Wanted, held: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], Callable[[Batch], tuple[NDArray[np.intp], Images]]]:
    """As `_as_wholes`, for patches."""
    count, seed = wanted.patches, wanted.seed
    quotas = spread(count, ~held, seed) + spread(max(1, round(count * wanted.held_out)), held, seed)
    places = drawn(quotas, stock.sizes, size, seed)
    return places.image, places.cut


def _without_twins(
    stock: Stock, looks: NDArray[np.float32], held: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """The held-out images that are not nearly the same as a training image; all held-out ones if none is left."""
    candidates, known = np.flatnonzero(held), np.flatnonzero(~held)
    twins = nearly_same(looks[held], looks[~held])
    same = twins >= 0
    if not same.any():
        return held, ()
    pairs = [
        f"{shown(stock.names[one])} is like {shown(stock.names[other])}"
        for one, other in zip(candidates[same][:_PAIRS_SHOWN], known[twins[same]], strict=False)
    ]
    what = f"of {len(candidates)} held-out images are nearly the same as one that is learnt from"
    told = f"{same.sum()} {what} ({', '.join(pairs)}{', ...' if same.sum() > len(pairs) else ''})"
    if same.all():
        return held, (f"{told}: all of them, so that no score tells how well new images are restored",)
    kept = held.copy()
    kept[candidates[same]] = False
    return kept, (f"{told} and are left out",)


def _levels_of(
    training: Images, counts: NDArray[np.int64], asked: Literal["auto", "binary", "grey"], label: str
) -> tuple[int, Levels, tuple[str, ...]]:
    """Threshold and levels of the training images; `counts` says how often the original images have each level."""
    trained = counted_levels(training)
    if np.count_nonzero(trained) < 2:
        raise TrainingError(
            f"{label}: all pixels to learn from have the same grey level; give images that show something"
        )
    threshold = threshold_of(trained)
    found, share, (dark, bright) = extremes(counts)
    notes: tuple[str, ...] = ()
    if asked == "auto":
        near = f"{share:.1%} of the pixels are near black (level {dark}) or near white (level {bright})"
        notes += (
            (f"taken for black and white, cut at level {threshold}: {near}; --levels grey learns grey levels",)
            if found == "binary"
            else (f"taken for grey: only {near}; --levels binary cuts them at level {threshold}",)
        )
    levels = found if asked == "auto" else asked
    if levels == "binary" and on_light_ground(training, threshold):
        notes += ("dark shapes on a light ground: priors learn them as they are, so restore images of that kind only",)
    return threshold, levels, notes


def _said(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
