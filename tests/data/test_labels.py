"""Labels: those of the images that `load` gives, in the same order; and what data without them get."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from mnist_data import mnist
from silhouette_data import COPIES, NAME, ROOT, needs_silhouettes

from restore.data import load, load_labels
from restore.data.idx import read_idx_labels
from restore.errors import InputError

LABELS = np.array([3, 0, 9, 3, 1], np.uint8)
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 3, 4), dtype=np.uint8)


def idx_bytes(values: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_labels_beside_a_file_of_images(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending else bytes
    images = put(tmp_path / f"mine-images-idx3-ubyte{ending}", pack(idx_bytes(IMAGES)))
    put(tmp_path / f"mine-labels-idx1-ubyte{ending}", pack(idx_bytes(LABELS)))
    found = load_labels(str(images))
    assert found.tolist() == LABELS.tolist()
    assert found.dtype == np.int64
    assert len(found) == len(load(str(images)).images)


BAD = {
    "images": (idx_bytes(IMAGES), "images.*not labels"),
    "truncated": (idx_bytes(LABELS)[:-1], "more than the file can hold|fewer bytes"),
    "padded": (idx_bytes(LABELS) + b"x", "more bytes"),
    "header-cut": (idx_bytes(LABELS)[:6], "within its header"),
    "empty": (b"", "must begin"),
    "gzip-damaged": (gzip.compress(idx_bytes(LABELS))[:-9], "damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_of_labels_are_refused_by_name(name: str, tmp_path: Path) -> None:
    content, fault = BAD[name]
    path = put(tmp_path / "mine-labels-idx1-ubyte", content)
    with pytest.raises(InputError, match=fault) as caught:
        read_idx_labels(path)
    assert str(path) in str(caught.value)


def test_data_without_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", IMAGES)
    alone = put(tmp_path / "digits", idx_bytes(IMAGES))
    for source in (tmp_path / "mine.npy", alone, tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="has no labels; give mnist"):
            load_labels(str(source))
    missing = put(tmp_path / "mine-images-idx3-ubyte", idx_bytes(IMAGES))
    with pytest.raises(InputError, match="mine-labels-idx1-ubyte: cannot be read"):
        load_labels(str(missing))


def mnist_with(folder: Path, labels: np.ndarray) -> Path:
    (folder / "mnist").mkdir()
    put(folder / "mnist" / "t10k-labels-idx1-ubyte", idx_bytes(labels))
    return folder


def test_labels_that_are_not_those_of_mnist(tmp_path: Path) -> None:
    for index, labels in enumerate((LABELS, np.full(10_000, 10, np.uint8), np.zeros(0, np.uint8))):
        (folder := tmp_path / str(index)).mkdir()
        with pytest.raises(InputError, match="not those of MNIST"):
            load_labels("mnist", split="test", root=mnist_with(folder, labels))


def has_labels() -> bool:
    folder = Path(os.environ.get("RESTORE_DATA", "")) / "mnist"
    return all((folder / f"{part}-labels-idx1-ubyte.gz").is_file() for part in ("train", "t10k"))


@pytest.mark.skipif(not has_labels(), reason="needs MNIST with labels: set RESTORE_DATA")
def test_the_labels_of_mnist() -> None:
    train, test = (load_labels("mnist", split=split) for split in ("train", "test"))
    # The digits at the beginning of both, as everybody knows them.
    assert train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert test[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert np.bincount(test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert hashlib.md5(idx_bytes(train.astype(np.uint8))).hexdigest() == "a25bea736e30d166cdddb491f175f624"
    # Ones have the least ink, so labels and images are in the same order.
    ink = mnist("test").images.reshape(len(test), -1).mean(1)
    assert np.argmin([ink[test == digit].mean() for digit in range(10)]) == 1


@needs_silhouettes
def test_the_labels_of_the_silhouettes() -> None:
    from scipy.io import loadmat

    whole = loadmat(COPIES[0])
    for split in ("train", "test"):
        labels, images = load_labels(NAME, split=split, root=ROOT), load(NAME, split=split, root=ROOT).images
        assert len(labels) == len(images)
        assert (labels.min(), labels.max()) == (1, 101)
        # Every picture has a class that the file gives to the same picture.
        given: dict[bytes, set[int]] = {}
        for row, label in zip(whole["X"], whole["Y"].ravel(), strict=True):
            given.setdefault(row.reshape(28, 28).T.astype(bool).tobytes(), set()).add(int(label))
        assert all(int(label) in given[(image > 0).tobytes()] for image, label in zip(images, labels, strict=True))
