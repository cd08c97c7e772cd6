"""MNIST: 60,000 + 10,000 handwritten digits, 28x28, white on black (LeCun, Bottou, Bengio & Haffner, 1998)."""

from __future__ import annotations

from pathlib import Path

from restore.data.arrays import read_idx
from restore.data.dataset import Images, Split
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import NamedSet
from restore.errors import InputError

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_TRAIN = RemoteFile(
    "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", _MIRRORS
)
_TEST = RemoteFile(
    "t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", _MIRRORS
)
_SHAPES: dict[Split, tuple[int, int, int]] = {"train": (60_000, 28, 28), "test": (10_000, 28, 28)}


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    images = read_idx(paths[0])
    if images.shape != _SHAPES[split]:
        raise InputError(f"holds images of shape {images.shape}, but this split of MNIST is {_SHAPES[split]}", paths[0])
    return images


MNIST = NamedSet("mnist", {"train": (_TRAIN,), "test": (_TEST,)}, _read)
