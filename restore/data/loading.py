"""`load`: open a data set by its name or path."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import get_args

import numpy as np

from restore.data.archives import ZIP, readable, unpacked
from restore.data.arrays import IDX, NPY, holds_arrays, parse_idx, parse_npy, read_npz
from restore.data.dataset import Dataset, Images, Split, checked
from restore.data.sets import NAMED_SETS
from restore.data.sets.named import own_split, read_named
from restore.data.stock import Limits, Stock, of_archive, of_folder, of_rows
from restore.errors import InputError, TrainingError, require, shown
from restore.images import DEFAULT_MAX_PIXELS
from restore.sizes import size_text

# Unlike `Path.exists`, it returns False for names that no file can have.
_exists = os.path.exists


def load(
    source: str,
    *,
    split: Split = "train",
    root: Path | None = None,
    max_bad: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Dataset:
    """Load a data set of images of one size, (N, H, W) in uint8, by its name or from a path.

    Args:
        source: a name ("mnist"), or the path of a folder of images, a zip archive of images, an idx file, or a .npy
            or .npz array; idx and .npy files may be compressed by gzip. A text that is both
            is a name; write ./mnist for a folder of that name. The name of a folder that holds train.npy and test.npy
            and lies where named sets do is a name, too. Folders are searched with their subfolders; if a folder or an
            archive has folders named train and test, the one of the split is used. Other paths have no splits: all
            their images are used for either.
        split: which part of the data.
        root: the folder to search first for named sets; by default the one in the environment variable RESTORE_DATA.
            After it come the cache and the download.
        max_bad: maximum number of unreadable images to skip, listed in the notes; more of them are an error.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.

    Raises:
        UsageError: if the split, max_bad or max_pixels is not a possible value.
        InputError: if the source does not exist, is not a data set, has too many pixels, or is a named set that can
            neither be found nor downloaded.
        TrainingError: if the data are empty, unreadable beyond `max_bad`, or of different sizes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/mine.npy", np.eye(4, dtype=bool).reshape(4, 2, 2))
    ...     load(f"{folder}/mine.npy").images.shape
    (4, 2, 2)
    """
    return as_dataset(open_stock(source, split, Limits(root, max_bad, max_pixels)), source, split)


def as_dataset(stock: Stock, source: str, split: Split) -> Dataset:
    """Put the images of a stock, which must have one size, into a data set; raises TrainingError as `load`."""
    other = np.flatnonzero((stock.sizes != stock.sizes[:1]).any(axis=1))
    if len(other):
        one, two = (f"{shown(stock.names[at])} has {size_text(stock.images[at].shape)}" for at in (0, other[0]))
        raise TrainingError(f"images differ in size ({one}, {two} pixels); resize them to one size first", stock.label)
    images = stock.images if isinstance(stock.images, np.ndarray) else np.array([*stock.images], dtype=np.uint8)
    return checked(images, source, split, stock.notes)


def open_stock(source: str | Path, split: Split = "train", limits: Limits = Limits()) -> Stock:  # noqa: B008
    """Open a data set as `load` does, whatever the sizes of its images."""
    require(split in get_args(Split), f"the split must be one of {', '.join(get_args(Split))}, not {split!r}")
    if isinstance(source, str) and source in NAMED_SETS:
        return of_rows(read_named(NAMED_SETS[source], split, limits.root), source)
    path = Path(source)
    if not _exists(path):
        path = own_split(str(source), split, limits.root) or path
    if not str(source) or not _exists(path):
        near = difflib.get_close_matches(str(source), NAMED_SETS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"neither a path nor a known data set ({', '.join(NAMED_SETS)}){hint}", source)
    if path.is_dir():
        return of_folder(path, split, limits)
    rows = _array(path, split, limits.max_pixels)
    return of_archive(path, split, limits) if rows is None else of_rows(rows[0], shown(path), rows[1])


def _array(path: Path, split: Split, max_pixels: int) -> tuple[Images, tuple[str, ...]] | None:
    """The images of a file that is an array, and notes; None if it is an archive of pictures."""
    with readable(path):
        with path.open("rb") as raw:
            if raw.read(4) in ZIP:
                return read_npz(path, split, max_pixels) if holds_arrays(path) else None
        with unpacked(path) as stream:
            head = stream.read(len(NPY))
            stream.seek(0)
            if head.startswith(NPY):
                return parse_npy(stream, str(path), max_pixels)
            if head.startswith(IDX[:3]):
                return parse_idx(stream, str(path), max_pixels), ()
    raise InputError("not a data set; give a folder or a zip archive of images, an idx file, or a numpy array", path)
