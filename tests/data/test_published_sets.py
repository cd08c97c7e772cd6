"""The published sets: their splits, how images are shown, and what other files in their place get."""

from __future__ import annotations

import hashlib
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from bad_images import encoded
from data_sets import (
    COPIES,
    FILE,
    NAME,
    SPELLINGS,
    cbcl,
    needs,
    needs_silhouettes,
    omniglot,
    overlap,
    silhouettes,
    zipped,
)
from refusals import refused
from scipy.io import savemat

from restore.data import load
from restore.data.sets import caltech101_silhouettes
from restore.data.sets import omniglot as omniglot_set
from restore.errors import InputError

needs_cbcl = needs("cbcl", *(f"{split}_faces.zip" for split in ("train", "test")))


OMNIGLOT = [f"images_background_small{part}.zip" for part in (1, 2)]


needs_omniglot = needs("omniglot", *OMNIGLOT)


FACES = np.random.default_rng(0).integers(0, 256, (472, 19, 19), dtype=np.uint8)
FACE = encoded(np.zeros((19, 19), dtype=np.uint8))
DRAWING = encoded(np.full((105, 105), 255, dtype=np.uint8))
FIRST = "images_background_small1/Greek/character01/0394_01.png"


def mat(**variables: np.ndarray) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables)
    return stream.getvalue()


# --- what needs no data ---


@pytest.mark.parametrize(
    ("rows_of", "sizes", "checksums"),
    [
        (caltech101_silhouettes.rows_of, (6_364, 2_307), ["6190225aaea131d7", "b1f183dedf84cece"]),
        (omniglot_set.rows_of, (3_630, 1_210), ["eefc43ca793e9a47", "9219ff9da1037599"]),
    ],
    ids=["silhouettes", "omniglot"],
)
def test_every_image_is_in_one_split_that_never_changes(rows_of, sizes, checksums):
    parts = [rows_of(split) for split in ("train", "test")]
    assert tuple(map(len, parts)) == sizes
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(sum(sizes)))
    assert [hashlib.sha256(rows.astype("<u4").tobytes()).hexdigest()[:16] for rows in parts] == checksums


def test_rows_of_the_silhouettes_are_columns_of_the_picture() -> None:
    picture = np.ones((28, 28), dtype=np.uint8)
    picture[3:9, 5] = 0  # a black stroke, six pixels high
    shown = caltech101_silhouettes.upright(np.stack([picture.ravel(order="F"), np.ones(784, dtype=np.uint8)]))
    assert shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[0], picture * 255)
    assert (shown[1] == 255).all()


def test_a_grey_level_of_a_drawing_is_the_share_of_ink() -> None:
    pixels = np.full((105, 105), 255, dtype=np.uint8)
    assert not omniglot_set.ink(pixels).any()
    pixels[:15, :30] = 0  # four pixels by eight of the picture shown: 105 / 28 = 15 / 4
    pixels[60:65, 60] = 0
    shown = omniglot_set.ink(pixels)
    assert (shown.shape, shown.dtype) == ((28, 28), np.uint8)
    assert (shown[:4, :8] == 255).all() and not shown[:4, 8:].any()
    # Ink is conserved, to the rounding of grey levels: five pixels over at most six others.
    assert shown[4:].sum() / 255 == pytest.approx(5 * (28 / 105) ** 2, abs=6 * 0.5 / 255)


@pytest.mark.parametrize(
    ("folder", "suffix", "kind"), [("faces/", "png", "PNG"), ("", "pgm", "PPM"), ("test/face/", "pgm", "PPM")]
)
def test_faces_come_in_the_order_of_their_numbers(tmp_path: Path, folder: str, suffix: str, kind: str) -> None:
    members = {f"{folder}cmu_{index:04d}.{suffix}": encoded(face, kind) for index, face in enumerate(FACES)}
    zipped(tmp_path / "cbcl" / "test_faces.zip", dict(reversed(members.items())))
    np.testing.assert_array_equal(load("cbcl", split="test", root=tmp_path).images, FACES)


# A whole file but for one damaged byte, the type of the pixels: it ends the process of whoever gives it to loadmat.
CRASHER = bytearray(mat(X=np.zeros((4, 784), dtype=bool)))
CRASHER[177] = 0xFF


@pytest.mark.parametrize("content", [b"", mat(X=np.zeros((4, 784), dtype=bool)), CRASHER], ids=["none", "few", "crash"])
def test_what_is_not_the_published_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / NAME / FILE
    path.parent.mkdir()
    path.write_bytes(content)
    with refused(InputError, path):
        load(NAME, root=tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "members"),
    [
        ("cbcl", "test_faces.zip", {"../cmu_0000.png": FACE}),
        ("cbcl", "test_faces.zip", {"cmu_0000.png": FACE, "b/cmu_0000.pgm": FACE}),
        ("cbcl", "test_faces.zip", {f"cmu_{index:04d}.png": b"hello" for index in range(472)}),
        ("cbcl", "test_faces.zip", {f"cmu_{index:04d}.png": DRAWING for index in range(472)}),
        ("omniglot", OMNIGLOT[0], {"../../outside.png": DRAWING}),
        ("omniglot", OMNIGLOT[0], {"images_background_small1/Greek/notes.txt": b"hello"}),
        ("omniglot", OMNIGLOT[0], {FIRST: FACE}),
        ("omniglot", OMNIGLOT[0], {FIRST: DRAWING}),
    ],
    ids=["up", "few", "no-picture", "size", "drawings-up", "drawings-none", "drawings-size", "drawings-few"],
)
def test_archives_of_something_else_are_refused(
    tmp_path: Path, name: str, file: str, members: dict[str, bytes]
) -> None:
    path = zipped(tmp_path / name / file, members)
    for other in OMNIGLOT if name == "omniglot" else ():
        zipped(path.with_name(other), members)
    before = sorted(tmp_path.rglob("*"))
    with refused(InputError, path):
        load(name, split="test", root=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_without_an_archive_it_is_said_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with refused(InputError, tmp_path / "cbcl"):
        load("cbcl", root=tmp_path)
    assert not (tmp_path / "cache").exists()


# --- what needs the files ---
# Whoever changes order, scaling or polarity makes the scores of every prior trained on these incomparable.


@needs_silhouettes
def test_the_silhouettes_never_change() -> None:
    splits = [silhouettes(split) for split in ("train", "test")]  # type: ignore[arg-type]
    assert [result.fingerprint for result in splits] == [
        "2e07a455f5b262ecaa7c084a086b39d1468073e9065a1668c3a7907f431698d9",
        "718d9acf4327bc5bf54f8966cf228295f47a711a78c5365daf4fccc4bbef3288",
    ]
    assert overlap(*splits) == 13  # the file itself repeats a few
    for result in splits:
        assert set(np.unique(result.images)) == {0, 255}
        # Black on white: objects fill a little less than half of a picture, and hardly ever its corners.
        assert result.images.mean() / 255 == pytest.approx(0.544, abs=0.004)
        assert result.images[:, [0, 0, -1, -1], [0, -1, 0, -1]].mean() / 255 > 0.9


@needs_silhouettes
@pytest.mark.parametrize("folder", SPELLINGS)
def test_the_folder_may_be_spelt_either_way(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    shutil.copy(COPIES[0], tmp_path / folder / FILE)
    dataset = load(NAME, split="test", root=tmp_path)
    assert dataset.name == NAME and dataset.fingerprint == silhouettes("test").fingerprint


@pytest.mark.thorough
@needs_cbcl
def test_the_faces_never_change() -> None:
    train, test = cbcl("train"), cbcl("test")
    assert (train.images.shape, test.images.shape) == ((2_429, 19, 19), (472, 19, 19))
    assert [result.fingerprint for result in (train, test)] == [
        "4018e219e3fcd36ae7c0248a360b3c425d8f0868cac8405eee91593529663d64",
        "bd21c9b01565ae7419d73c36027d4122f50e6311336593e8b3505ea596b709e8",
    ]
    assert overlap(train, test) == 0


@pytest.mark.thorough
@needs_omniglot
def test_the_drawings_never_change() -> None:
    train, test = omniglot("train"), omniglot("test")
    assert [result.fingerprint for result in (train, test)] == [
        "52fe073f9c021a4a15725da28ba2a293503506116be70f8f122859faa7e37f21",
        "edf23d3f37e26326d6c3240886e9276c85fdddc50ba640737d999be9d86efb33",
    ]
    assert overlap(train, test) == 0
    for result in (train, test):
        assert result.images.mean() / 255 == pytest.approx(0.08, abs=0.003)
        # White strokes are about half a shown pixel wide, so that most of their pixels are grey.
        assert result.images.max() == 255 and (result.images == 0).mean() > 0.8
    assert not any("repeat" in note for note in train.notes + test.notes)
