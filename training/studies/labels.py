"""The classes of images, in the order in which `restore.data.load` gives the images."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Split
from restore.data.sets.caltech101_silhouettes import rows_of
from restore.errors import InputError

# Beside idx files of images, those of their labels.
_OF_IMAGES, _OF_LABELS = "images-idx3", "labels-idx1"
_MNIST: dict[Split, str] = {"train": f"train-{_OF_LABELS}-ubyte", "test": f"t10k-{_OF_LABELS}-ubyte"}
_SILHOUETTES = "caltech101_silhouettes_28.mat"


def load_labels(source: str, *, split: Split = "train", root: Path | None = None) -> NDArray[np.int64]:
    """The class of each image of a data set, (N,).

    Args:
        source: "mnist", "caltech101-silhouettes", or an idx file of images named as MNIST's, with the file of their
            labels beside it.
        split: which part of the data.
        root: the folder of named data sets; by default the one in RESTORE_DATA. Nothing is downloaded.

    Raises:
        InputError: if the data have no labels, or no file of them is there.
    """
    own = root or Path(os.environ.get("RESTORE_DATA", "."))
    if source == "mnist":
        return _idx(own / "mnist" / _MNIST[split])
    if source == "caltech101-silhouettes":
        from scipy.io import loadmat

        path = _first(own / name / _SILHOUETTES for name in (source, source.replace("-", "_")))
        labels: NDArray[np.int64] = loadmat(path, variable_names=["Y"])["Y"].ravel().astype(np.int64)
        return labels[rows_of(split)]
    path = Path(source)
    if _OF_IMAGES not in path.name:
        raise InputError(f"{source}: has no labels; give mnist, caltech101-silhouettes or a file …{_OF_IMAGES}…")
    return _idx(path.with_name(path.name.replace(_OF_IMAGES, _OF_LABELS)))


def _idx(path: Path) -> NDArray[np.int64]:
    """The values of an idx file of labels, gzipped or not, whatever its name says."""
    content = _first((path, path.with_name(f"{path.name}.gz"))).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    count = int.from_bytes(content[4:8], "big")
    if content[:4] != b"\0\0\x08\x01" or len(content) != 8 + count:
        raise InputError(f"{path}: not a whole idx file of labels; get it again")
    return np.frombuffer(content, np.uint8, offset=8).astype(np.int64)


def _first(paths: Iterable[Path]) -> Path:
    tried = [*paths]
    for path in tried:
        if path.is_file():
            return path
    raise InputError(f"{tried[0]}: no such file; put the labels there")
