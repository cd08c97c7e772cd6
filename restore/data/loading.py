"""`load`: a data-set name or a path becomes a `Dataset`."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np

from restore.data.caltech101_silhouettes import CALTECH101_SILHOUETTES
from restore.data.cbcl import CBCL
from restore.data.dataset import Dataset, Images, Split, as_grey, checked
from restore.data.idx import GZIP, UINT8, read_idx
from restore.data.mnist import MNIST
from restore.data.named import NamedSet, read_named
from restore.data.omniglot import OMNIGLOT
from restore.data.patterns import BARS_AND_STRIPES, SHIFTING_BAR
from restore.errors import InputError, RestoreError, TrainingError, UsageError, shown

# A new data set is one file like mnist.py and one entry here.
NAMED: dict[str, NamedSet] = {
    known.name: known for known in (MNIST, CALTECH101_SILHOUETTES, CBCL, OMNIGLOT, BARS_AND_STRIPES, SHIFTING_BAR)
}

_NPY = b"\x93NUMPY"
_NAMES_SHOWN = 5


def load(source: str, *, split: Split = "train", root: Path | None = None, max_bad: int = 0) -> Dataset:
    """Load a data set by its name or from a path.

    Args:
        source: a name ("mnist"), or the path of a folder of images, an idx file (gzipped or not), or a .npy array. A
            name wins over a path; write ./mnist for a folder of that name. A folder is searched with its sub-folders;
            if it has folders named train and test, the one of the split is used. Other paths have no splits: all their
            images are used for either.
        split: which part of the data.
        root: where named sets are looked for first; by default the folder in the environment variable RESTORE_DATA.
            After it come the cache and the download.
        max_bad: how many images of a folder that are unreadable or coloured are skipped, and listed in the notes,
            before it is an error.

    Returns:
        Images (N, H, W) in uint8, at least two of them for training.

    Raises:
        UsageError: if the split or max_bad is not a possible value.
        InputError: if the source does not exist or is no such file, or a named set can neither be found nor downloaded.
        TrainingError: if the data are empty, unreadable beyond `max_bad`, or of different sizes.
    """
    if split not in get_args(Split):
        raise UsageError(f"the split must be one of {', '.join(get_args(Split))}, not {split!r}")
    if max_bad < 0:
        raise UsageError(f"max_bad must not be negative, not {max_bad}")
    if source in NAMED:
        return checked(read_named(NAMED[source], split, root), source, split)
    images, notes = _read_path(source, split, max_bad)
    return checked(images, source, split, notes)


def _read_path(source: str, split: Split, max_bad: int) -> tuple[Images, tuple[str, ...]]:
    path = Path(source)
    if not source or not _exists(path):
        raise InputError(_unknown(source))
    if path.is_dir():
        return _read_folder(path, split, max_bad)
    try:
        with path.open("rb") as stream:
            head = stream.read(len(_NPY))
    except OSError as fault:
        raise InputError(f"{shown(source)}: cannot be read ({fault.strerror or fault})") from fault
    if head == _NPY:
        return _read_npy(path)
    if head.startswith((GZIP, UINT8)):
        return read_idx(path), ()
    raise InputError(f"{shown(source)}: not a data set; give a folder of images, an idx file, or a .npy array")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for the file system, or with a NUL in it
        return False


def _unknown(source: str) -> str:
    near = difflib.get_close_matches(source, NAMED, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{shown(source)}: neither a path nor a known data set ({', '.join(NAMED)}){hint}"


def _read_npy(path: Path) -> tuple[Images, tuple[str, ...]]:
    try:
        # Mapping the file instead of reading it makes a header that promises too much an error, not an allocation.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as fault:  # numpy parses the header as Python source and lets through whatever that raises
        reason = " ".join(str(fault).split())
        raise InputError(f"{shown(path)}: not a usable .npy array ({reason}); write it again") from fault
    if values.ndim != 3:
        raise InputError(f"{shown(path)}: has shape {values.shape}; a data set has shape (N, H, W)")
    return as_grey(values, str(path))


def _read_folder(folder: Path, split: Split, max_bad: int) -> tuple[Images, tuple[str, ...]]:
    if all((folder / name).is_dir() for name in get_args(Split)):
        folder = folder / split
    read = [(shown(path.relative_to(folder)), _read_image(path)) for path in _image_files(folder)]
    good = [(name, *result) for name, result in read if not isinstance(result, RestoreError)]
    bad = [(name, result) for name, result in read if isinstance(result, RestoreError)]
    if not good:
        raise TrainingError(f"{shown(folder)}: none of its {len(bad)} images can be used; the first: {bad[0][1]}")
    if len(bad) > max_bad:
        names = ", ".join(name for name, _ in bad[:_NAMES_SHOWN])
        more = f" and {len(bad) - _NAMES_SHOWN} more" if len(bad) > _NAMES_SHOWN else ""
        raise TrainingError(
            f"{shown(folder)}: {len(bad)} of {len(read)} images cannot be used ({names}{more}); "
            f"remove them, or skip them with --max-bad {len(bad)}"
        )
    first, reference, _ = good[0]
    for name, pixels, _ in good:
        if pixels.shape != reference.shape:
            raise TrainingError(
                f"{shown(folder)}: images differ in size ({first} has {_size(reference)}, {name} has {_size(pixels)} "
                "pixels); bring them to one size first"
            )
    skipped = tuple(f"skipped {fault}" for _, fault in bad)
    said = Counter(note for _, _, notes in good for note in notes)
    return np.stack([pixels for _, pixels, _ in good]), skipped + tuple(
        f"{note} ({n} images)" for note, n in said.items()
    )


def _image_files(folder: Path) -> list[Path]:
    from restore.outputs import IMAGE_SUFFIXES

    found = (path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    paths = sorted(path for path in found if not path.name.startswith("."))
    if not paths:
        endings = ", ".join(sorted(IMAGE_SUFFIXES))
        raise TrainingError(f"{shown(folder)}: the data set is empty; put images ({endings}) into it")
    return paths


def _read_image(path: Path) -> tuple[Images, tuple[str, ...]] | RestoreError:
    """Grey levels and the notes made while reading; or what is wrong, so that the search for others goes on."""
    from restore.images import read_picture

    try:
        picture = read_picture(path, name=str(path))
    except RestoreError as fault:
        return fault
    notes = picture.notes if picture.alpha is None else (*picture.notes, "transparency is ignored")
    return np.rint(picture.pixels * 255).astype(np.uint8), notes


def _size(pixels: Images) -> str:
    return f"{pixels.shape[1]}x{pixels.shape[0]}"
