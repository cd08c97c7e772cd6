"""MNIST: 60,000 + 10,000 handwritten digits, 28x28, white on black (LeCun, Bottou, Bengio & Haffner, 1998)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from restore.data.dataset import Images, Split
from restore.data.idx import read_idx, read_idx_labels
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import Labels, LabelSource, NamedSet
from restore.errors import InputError, shown

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_TRAIN = RemoteFile(
    "train-images-idx3-ubyte.gz",
    9_912_422,
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    _MIRRORS,
)
_TEST = RemoteFile(
    "t10k-images-idx3-ubyte.gz",
    1_648_877,
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    _MIRRORS,
)
_TRAIN_LABELS = RemoteFile(
    "train-labels-idx1-ubyte.gz",
    28_881,
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    _MIRRORS,
)
_TEST_LABELS = RemoteFile(
    "t10k-labels-idx1-ubyte.gz",
    4_542,
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    _MIRRORS,
)
_SHAPES: dict[Split, tuple[int, int, int]] = {"train": (60_000, 28, 28), "test": (10_000, 28, 28)}


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    (path,) = paths
    images = read_idx(path)
    if images.shape != _SHAPES[split]:
        raise InputError(
            f"{shown(path)}: holds images of shape {images.shape}, but this split of MNIST is {_SHAPES[split]}"
        )
    return images


def _read_labels(split: Split, paths: tuple[Path, ...]) -> Labels:
    (path,) = paths
    labels = read_idx_labels(path)
    if len(labels) != _SHAPES[split][0] or labels.max() > 9:
        raise InputError(
            f"{shown(path)}: holds {len(labels)} labels up to {labels.max(initial=0)}, and not those of MNIST"
        )
    return labels.astype(np.int64)


MNIST = NamedSet(
    "mnist",
    {"train": (_TRAIN,), "test": (_TEST,)},
    _read,
    LabelSource({"train": (_TRAIN_LABELS,), "test": (_TEST_LABELS,)}, _read_labels),
)
