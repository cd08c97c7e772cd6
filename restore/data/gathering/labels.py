"""`load_labels`: the classes of the images that `load` gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from restore.data.dataset import Split
from restore.data.idx import GZIP, UINT8, read_idx_labels
from restore.data.loading import NAMED
from restore.data.sets.named import Labels, read_labels
from restore.errors import InputError, shown

# Part of the name of MNIST's image files, and what replaces it in the name of the label file.
_OF_IMAGES, _OF_LABELS = "images-idx3", "labels-idx1"


def load_labels(source: str, *, split: Split = "train", root: Path | None = None) -> Labels:
    """The class of each image of `restore.data.load`, in the same order.

    Args:
        source: a name, or an idx file of images named like MNIST's (…images-idx3…), with the file of their labels
            (…labels-idx1…) beside it.
        split, root: as in `load`.

    Returns:
        Shape (N,), int64.

    Raises:
        InputError: if the data have no labels, or they cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     images, labels = Path(folder, "my-images-idx3-ubyte"), Path(folder, "my-labels-idx1-ubyte")
    ...     _ = images.write_bytes(bytes([0, 0, 8, 3])), labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 3]))
    ...     load_labels(str(images)).tolist()
    [7, 3]
    """
    if source in NAMED:
        return read_labels(NAMED[source], split, root)
    path = Path(source)
    try:
        with path.open("rb") as stream:
            is_idx = stream.read(len(UINT8)).startswith((GZIP, UINT8))
    except (OSError, ValueError):  # no such file, a folder, or an invalid name; `load` reports which
        is_idx = False
    if not is_idx or _OF_IMAGES not in path.name:
        having = ", ".join(name for name, known in NAMED.items() if known.labels is not None)
        raise InputError(
            f"{shown(source)}: has no labels; give {having}, or an idx file named …{_OF_IMAGES}… with …{_OF_LABELS}… "
            "beside it"
        )
    return read_idx_labels(path.with_name(path.name.replace(_OF_IMAGES, _OF_LABELS))).astype(np.int64)
