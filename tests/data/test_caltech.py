"""The Caltech-101 silhouettes: their splits, how they are shown, and what other files in their place get."""

from __future__ import annotations

import hashlib
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from silhouette_data import COPIES, FILE, NAME, ROOT, SPELLINGS, needs_silhouettes

from restore.data import Dataset, load, overlap
from restore.data.sets.caltech101_silhouettes import rows_of, upright
from restore.data.sets.download import RemoteFile, read_intact
from restore.errors import InputError


def mat(**variables: np.ndarray) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables)
    return stream.getvalue()


def put(content: bytes, root: Path, folder: str = NAME) -> Path:
    """A copy of the user's own, with this content."""
    path = root / folder / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


# --- what needs no data ---


def test_every_row_is_in_one_split() -> None:
    train, test = rows_of("train"), rows_of("test")
    assert (len(train), len(test)) == (6_364, 2_307)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(8_671))


@pytest.mark.parametrize(
    ("split", "checksum"),
    [
        ("train", "6190225aaea131d76e433b36d9f86b0780f22551024f29e719a4c96ec5c6e4e2"),
        ("test", "b1f183dedf84cecec7a4a7e018db69c18cb1ae9310b00d754fe96f9c392dd1cf"),
    ],
)
def test_the_splits_never_change(split: str, checksum: str) -> None:
    rows = rows_of(split).astype("<u4")  # type: ignore[arg-type]
    assert hashlib.sha256(rows.tobytes()).hexdigest() == checksum


def test_rows_of_the_file_are_columns_of_the_picture() -> None:
    picture = np.ones((28, 28), dtype=np.uint8)
    picture[3:9, 5] = 0  # a black stroke, six pixels high
    shown = upright(np.stack([picture.ravel(order="F"), np.ones(784, dtype=np.uint8)]))
    assert shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[0], picture * 255)
    assert (shown[1] == 255).all()


# A whole file but for one damaged byte, the type of the pixels: it ends the process of whoever gives it to loadmat.
CRASHER = bytearray(mat(X=np.zeros((4, 784), dtype=bool)))
CRASHER[177] = 0xFF

NOT_THE_FILE = {
    "empty": b"",
    "text": b"hello, world",
    "zeros": bytes(2_000),
    "no-such-variable": mat(Y=np.zeros((4, 784), dtype=bool)),
    "few-images": mat(X=np.zeros((4, 784), dtype=bool)),
    "other-type": mat(X=np.zeros((2, 2), dtype=object)),
    "crashes-loadmat": bytes(CRASHER),
    "too-long": bytes(701_203),
}


@pytest.mark.parametrize("folder", SPELLINGS)
@pytest.mark.parametrize("name", NOT_THE_FILE)
def test_copies_of_something_else_are_refused_by_name(tmp_path: Path, name: str, folder: str) -> None:
    path = put(NOT_THE_FILE[name], tmp_path, folder)
    with pytest.raises(InputError) as caught:
        load(NAME, root=tmp_path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_intact(tmp_path, RemoteFile("x", "", ("https://example.org/",)))


@pytest.mark.parametrize("name", ["caltech101_silhouettes", "caltech101", "caltech-silhouettes"])
def test_a_name_that_is_nearly_right_gets_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        load(name)


# --- what needs the file ---


@pytest.fixture(scope="module")
def splits() -> tuple[Dataset, Dataset]:
    return load(NAME, split="train", root=ROOT), load(NAME, split="test", root=ROOT)


@needs_silhouettes
def test_the_silhouettes_are_black_on_white(splits: tuple[Dataset, Dataset]) -> None:
    for found, count in zip(splits, (6_364, 2_307), strict=True):
        assert found.images.shape == (count, 28, 28)
        assert found.images.dtype == np.uint8
        assert set(np.unique(found.images)) == {0, 255}
        # Objects fill a little less than half of a picture, and hardly ever its corners.
        assert found.images.mean() / 255 == pytest.approx(0.544, abs=0.004)
        assert found.images[:, [0, 0, -1, -1], [0, -1, 0, -1]].mean() / 255 > 0.9
        assert found.images[:, 12:16, 12:16].mean() / 255 < 0.1


@needs_silhouettes
def test_the_images_never_change(splits: tuple[Dataset, Dataset]) -> None:
    # Whoever changes order, orientation or polarity makes the scores of every prior trained on these incomparable.
    assert [found.fingerprint for found in splits] == [
        "2e07a455f5b262ecaa7c084a086b39d1468073e9065a1668c3a7907f431698d9",
        "718d9acf4327bc5bf54f8966cf228295f47a711a78c5365daf4fccc4bbef3288",
    ]


@needs_silhouettes
def test_the_file_itself_repeats_a_few_images(splits: tuple[Dataset, Dataset]) -> None:
    assert overlap(*splits) == 13
    assert [found.notes[0] for found in splits] == [
        "33 of 6364 images repeat an earlier one",
        "8 of 2307 images repeat an earlier one",
    ]


@needs_silhouettes
@pytest.mark.parametrize("folder", SPELLINGS)
def test_the_folder_may_be_spelt_either_way(tmp_path: Path, folder: str, splits: tuple[Dataset, Dataset]) -> None:
    (tmp_path / folder).mkdir()
    shutil.copy(COPIES[0], tmp_path / folder / FILE)
    found = load(NAME, split="test", root=tmp_path)
    assert found.name == NAME
    assert found.fingerprint == splits[1].fingerprint


@needs_silhouettes
@pytest.mark.parametrize("damage", ["flipped", "truncated", "padded"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    whole = COPIES[0].read_bytes()
    middle = len(whole) // 2
    content = {
        "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "truncated": whole[:-1],
        "padded": whole + b"\0",
    }[damage]
    path = put(content, tmp_path)
    with pytest.raises(InputError) as caught:
        load(NAME, root=tmp_path)
    assert str(path) in str(caught.value)
