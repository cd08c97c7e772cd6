"""Data sets that are downloaded, by checksum."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from data_sets import IMAGES, idx_bytes, mnist, needs_mnist, overlap, write
from processes import Mirror
from refusals import refused

from restore.data import load
from restore.data.arrays import read_idx
from restore.data.sets import NAMED_SETS
from restore.data.sets.download import RemoteFile, fetch
from restore.data.sets.named import NamedSet
from restore.errors import InputError

CONTENT = gzip.compress(idx_bytes(IMAGES), mtime=0)


def remote(*mirrors: str) -> RemoteFile:
    return RemoteFile("x-ubyte.gz", hashlib.sha256(CONTENT).hexdigest(), mirrors)


def test_the_next_mirror_is_tried(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/wrong/x-ubyte.gz"] = (200, b"x" * len(CONTENT))
    mirror.answers["/good/x-ubyte.gz"] = (200, CONTENT)
    places = [f"{mirror.address}/{name}/" for name in ("gone", "wrong", "good")]
    assert fetch(remote(*places), tmp_path).read_bytes() == CONTENT
    assert mirror.asked == ["/gone/x-ubyte.gz", "/wrong/x-ubyte.gz", "/good/x-ubyte.gz"]


def flipped(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


@pytest.mark.parametrize(
    ("status", "body", "promised"),
    [
        (200, flipped(CONTENT), None),
        (200, CONTENT[:50], len(CONTENT)),
        (200, CONTENT + b"x", None),
        (200, b"", None),
        (404, b"", None),
        (500, CONTENT, None),
    ],
    ids=["flipped-bit", "cut-off", "long", "empty", "404", "500"],
)
def test_bad_downloads_leave_nothing(
    mirror: Mirror, tmp_path: Path, status: int, body: bytes, promised: int | None
) -> None:
    mirror.answers["/x-ubyte.gz"] = (status, body)
    if promised is not None:
        mirror.promised["/x-ubyte.gz"] = promised
    with refused(InputError, mirror.address):
        fetch(remote(mirror.address), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_copy_in_the_cache_is_replaced(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/x-ubyte.gz"] = (200, CONTENT)
    write(tmp_path / "x-ubyte.gz", flipped(CONTENT))
    assert fetch(remote(mirror.address), tmp_path).read_bytes() == CONTENT


@pytest.fixture
def named(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A data set "tiny" with one file, published by the mirror; no own copy, and a cache of its own."""
    file = remote(mirror.address)
    monkeypatch.setitem(NAMED_SETS, "tiny", NamedSet("tiny", {"train": (file,)}, lambda _, paths: read_idx(paths[0])))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RESTORE_DATA", raising=False)
    mirror.answers["/x-ubyte.gz"] = (200, CONTENT)
    return mirror


def test_named_sets_are_downloaded_once(named: Mirror, tmp_path: Path) -> None:
    for _ in range(2):
        dataset = load("tiny")
        np.testing.assert_array_equal(dataset.images, IMAGES)
        assert (dataset.name, dataset.split) == ("tiny", "train")
    assert len(named.asked) == 1
    assert [path.name for path in tmp_path.rglob("*ubyte*")] == ["x-ubyte.gz"]


@pytest.mark.parametrize("name", ["x-ubyte.gz", "x-ubyte"])
def test_own_copies_come_first_and_may_be_packed_differently(
    named: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    other = IMAGES[::-1]
    content = gzip.compress(idx_bytes(other), 1) if name.endswith(".gz") else idx_bytes(other)
    write(tmp_path / "mine" / "tiny" / name, content)
    np.testing.assert_array_equal(load("tiny", root=tmp_path / "mine").images, other)
    monkeypatch.setenv("RESTORE_DATA", str(tmp_path / "mine"))
    np.testing.assert_array_equal(load("tiny").images, other)
    assert named.asked == []


def test_offline_says_in_one_line_where_to_put_the_file(
    named: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.answers.clear()
    with refused(InputError):
        load("tiny")
    monkeypatch.setenv("RESTORE_DATA", str(tmp_path / "mine"))
    with pytest.raises(InputError):
        load("tiny")


def test_mnist_of_another_shape_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "mnist" / "train-images-idx3-ubyte.gz", CONTENT)
    with pytest.raises(InputError):
        load("mnist", root=tmp_path)


@needs_mnist
def test_mnist() -> None:
    train, test = mnist("train"), mnist("test")
    assert train.images.shape == (60_000, 28, 28)
    assert test.images.shape == (10_000, 28, 28)
    # The means everyone normalises with: .1307 and .1325 of full scale.
    assert train.images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert test.images.mean() / 255 == pytest.approx(0.1325, abs=5e-5)
    assert overlap(train, test) == 0
