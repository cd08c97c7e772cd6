"""`load`: open a data set by its name or path."""

from __future__ import annotations

import difflib
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Dataset, Images, Split, as_grey, checked
from restore.data.gathering.packed import HEAD, holds_tar, is_archive
from restore.data.gathering.pictures import in_archive, in_folder
from restore.data.gathering.stock import Stock, of_files, of_rows, whole
from restore.data.idx import GZIP, UINT8, read_idx
from restore.data.sets.caltech101_silhouettes import CALTECH101_SILHOUETTES
from restore.data.sets.cbcl import CBCL
from restore.data.sets.mnist import MNIST
from restore.data.sets.named import NamedSet, own_array, read_named
from restore.data.sets.omniglot import OMNIGLOT
from restore.data.sets.patterns import BARS_AND_STRIPES, SHIFTING_BAR
from restore.data.sets.shapes import SHAPES
from restore.errors import InputError, TrainingError, UsageError, reason, shown
from restore.images import DEFAULT_MAX_PIXELS, check_together

# A new data set is one file like mnist.py, and one entry here.
NAMED: dict[str, NamedSet] = {
    known.name: known
    for known in (
        MNIST,
        CALTECH101_SILHOUETTES,
        CBCL,
        OMNIGLOT,
        BARS_AND_STRIPES,
        SHIFTING_BAR,
        SHAPES,
    )
}

_NPY = b"\x93NUMPY"


def load(
    source: str,
    *,
    split: Split = "train",
    root: Path | None = None,
    max_bad: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Dataset:
    """Load a data set by its name or from a path.

    Args:
        source: as in `open_stock`.
        split: which part of the data.
        root: the folder to search first for named sets; by default the one in the environment variable RESTORE_DATA.
            After it come the cache and the download.
        max_bad: how many unreadable or coloured images of a folder or an archive are skipped, and listed in the notes,
            before it is an error.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.

    Returns:
        Images (N, H, W) in uint8; at least two for training.

    Raises:
        UsageError: if the split, max_bad or max_pixels is not a possible value.
        InputError: if the source does not exist, is not a data set, has too many pixels, or is a named set that can
            neither be found nor downloaded.
        TrainingError: if the data are empty, unreadable beyond `max_bad`, or of different sizes.

    >>> patterns = load("bars-and-stripes")
    >>> patterns.images.shape, patterns.notes[1]
    ((16, 3, 3), '2 of 16 images repeat an earlier one')
    """
    stock = open_stock(source, split=split, root=root, max_bad=max_bad, max_pixels=max_pixels)
    return as_dataset(stock, source, split)


def as_dataset(stock: Stock, source: str, split: Split) -> Dataset:
    """All images of a stock, as `load` gives them.

    Raises:
        TrainingError: as `load`.
    """
    return checked(whole(stock, _only_size(stock)), source, split, stock.notes)


def open_stock(
    source: str | Path,
    *,
    split: Split = "train",
    root: Path | None = None,
    max_bad: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Stock:
    """Open a data set by its name or path, whatever the sizes of its images.

    Args:
        source: a name ("mnist"), or the path of a folder of images, an archive of images (zip, or tar with or without
            compression), an idx file (gzipped or not), or a .npy array. A text that is both is a name; write ./mnist
            for a folder of that name. The name of a folder that holds train.npy and test.npy and lies where named sets
            do is a name, too. Folders are searched with their subfolders; if a folder or an archive has folders
            named train and test, the one of the split is used. Other paths have no splits: all their images are used
            for either.
        split, root, max_bad, max_pixels: as in `load`.

    Raises:
        UsageError, InputError, TrainingError: as in `load`, except that images may differ in size.
    """
    if split not in get_args(Split):
        raise UsageError(f"the split must be one of {', '.join(get_args(Split))}, not {split!r}")
    if max_bad < 0:
        raise UsageError(f"max_bad must not be negative, not {max_bad}")
    if max_pixels < 1:
        raise UsageError(f"--max-pixels must be at least 1, not {max_pixels}")
    if isinstance(source, str) and source in NAMED:
        return of_rows(read_named(NAMED[source], split, root), source)
    path = Path(source)
    if source and path.name == str(source) and not _exists(path):
        path = own_array(path.name, split, root) or path
    if not source or not _exists(path):
        raise InputError(_unknown(str(source)))
    if path.is_dir():
        return of_files(in_folder(path, split), max_bad, max_pixels)
    head = _head(path)
    if head.startswith(_NPY):
        return of_rows(*_read_npy(path, max_pixels))
    if head.startswith(UINT8) or (head.startswith(GZIP) and not holds_tar(path)):
        return of_rows(read_idx(path, max_pixels), shown(path))
    if is_archive(head):
        return of_files(in_archive(path, split), max_bad, max_pixels)
    raise InputError(
        f"{shown(path)}: not a data set; give a folder or an archive of images, an idx file, or a .npy array"
    )


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for the file system, or with a NUL in it
        return False


def _unknown(source: str) -> str:
    near = difflib.get_close_matches(source, NAMED, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{shown(source)}: neither a path nor a known data set ({', '.join(NAMED)}){hint}"


def _read_npy(path: Path, max_pixels: int) -> tuple[Images, str, tuple[str, ...]]:
    try:
        with warnings.catch_warnings():
            # About headers written by Python 2, which are valid.
            warnings.simplefilter("ignore")
            # If the header promises too much, mapping the file is an error instead of a huge allocation.
            values = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as fault:  # numpy parses the header as Python source and lets any exception through
        raise InputError(f"{shown(path)}: not a usable .npy array ({reason(fault)}); write it again") from fault
    if values.ndim != 3:
        raise InputError(f"{shown(path)}: has shape {values.shape}; a data set has shape (N, H, W)")
    # A file may be long and yet take little space on disk.
    check_together(values.size, str(path), max_pixels)
    images, notes = as_grey(values, str(path))
    return images, shown(path), notes


def _only_size(stock: Stock) -> tuple[int, int]:
    """The common size of all images; any size if there are none."""
    if not len(stock.sizes):
        return 0, 0
    other = np.flatnonzero((stock.sizes != stock.sizes[0]).any(axis=1))
    if len(other):
        (first, second), names = stock.sizes[[0, other[0]]], (stock.names[0], stock.names[other[0]])
        raise TrainingError(
            f"{stock.label}: images differ in size ({shown(names[0])} has {_size(first)}, {shown(names[1])} has "
            f"{_size(second)} pixels); bring them to one size first"
        )
    height, width = stock.sizes[0].tolist()
    return height, width


def _size(size: NDArray[np.intp]) -> str:
    return f"{size[1]}x{size[0]}"
