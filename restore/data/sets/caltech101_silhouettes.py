"""Caltech-101 silhouettes: 8,671 outlines of objects, 28x28, black on white (Marlin, Swersky, Chen & de Freitas, 2010).

The images come in one file, sorted by class. The published division into training (4,100), validation (2,264) and test
images (2,307) is in a second file, which is not distributed with the first and not used here. The splits here have the
published sizes, but their own members, drawn by a fixed permutation: scores compare with published ones on average, not
image by image. Training and validation images are one split, since a recipe takes its validation images from the
training split. A few silhouettes occur twice, also across the splits.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, Split, fixed_order
from restore.data.sets.download import RemoteFile, read_intact
from restore.data.sets.named import NamedSet

_SILHOUETTES = RemoteFile(
    "caltech101_silhouettes_28.mat",
    "862d0a4b828256d54ad5de7c5066c18c72f355cac5b7cde4c1c3be7c000d180b",
    ("https://people.cs.umass.edu/~marlin/data/",),
)
# The side of a picture in pixels, and the seed of the order in which they are split; then how many there are.
_SIDE, _SEED = 28, 0
_SIZES: dict[Split, int] = {"train": 4_100 + 2_264, "test": 2_307}


def rows_of(split: Split) -> NDArray[np.intp]:
    """The rows of the file that make up a split, in the split's order; each row is in exactly one split."""
    order = fixed_order(sum(_SIZES.values()), _SEED)
    return order[: _SIZES["train"]] if split == "train" else order[_SIZES["train"] :]


def upright(rows: NDArray[np.uint8]) -> Images:
    """Turn rows of the file, columns of 0 = silhouette and 1 = ground, into pictures (N, 28, 28) of 0 and 255."""
    columns = rows.reshape(len(rows), _SIDE, _SIDE)
    return np.ascontiguousarray(columns.transpose(0, 2, 1)) * np.uint8(255)


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    from scipy.io import loadmat

    # A damaged file can crash loadmat's compiled code, and the splits only fit the published order of the images. So
    # nothing but the published bytes is read, and no other fault can occur.
    content = read_intact(paths[0], _SILHOUETTES)
    return upright(loadmat(io.BytesIO(content), variable_names=["X"])["X"][rows_of(split)])


CALTECH101_SILHOUETTES = NamedSet("caltech101-silhouettes", {"train": (_SILHOUETTES,), "test": (_SILHOUETTES,)}, _read)
