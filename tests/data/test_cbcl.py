"""The CBCL faces: what is read, and archives that hold something else."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cbcl_data import cbcl, needs_cbcl
from PIL import Image

from restore.data import load, overlap
from restore.errors import InputError

FACES = np.random.default_rng(0).integers(0, 256, (472, 19, 19), dtype=np.uint8)


def encoded(pixels: np.ndarray, kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


BLANK = encoded(np.zeros((19, 19), dtype=np.uint8), "PNG")


def archive(root: Path, members: dict[str, bytes]) -> Path:
    """A user's own archive of test faces."""
    path = root / "cbcl" / "test_faces.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("folder", "suffix", "kind"), [("faces/", "png", "PNG"), ("", "pgm", "PPM"), ("test/face/", "pgm", "PPM")]
)
def test_faces_come_in_the_order_of_their_numbers(tmp_path: Path, folder: str, suffix: str, kind: str) -> None:
    members = {f"{folder}cmu_{index:04d}.{suffix}": encoded(face, kind) for index, face in enumerate(FACES)}
    archive(tmp_path, dict(reversed(members.items())))
    found = load("cbcl", split="test", root=tmp_path)
    np.testing.assert_array_equal(found.images, FACES)


@pytest.mark.parametrize(
    "members",
    [
        {"../cmu_0000.png": BLANK},
        {"faces/../../cmu_0000.png": BLANK},
        {"cmu_0000.png": bytes(100_000_000)},
        {"cmu_0000.png": BLANK, "b/cmu_0000.pgm": BLANK},
        {f"cmu_{index:04d}.png": b"hello" for index in range(472)},
        {f"cmu_{index:04d}.png": encoded(np.zeros((20, 19), np.uint8), "PNG") for index in range(472)},
        {},
    ],
    ids=["row-48-up", "row-48-within", "row-48-bomb", "few", "no-picture", "size", "none"],
)
def test_archives_of_something_else_are_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    path = archive(tmp_path, members)
    with pytest.raises(InputError) as caught:
        load("cbcl", split="test", root=tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_an_archive_it_is_said_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InputError) as caught:
        load("cbcl", root=tmp_path)
    assert str(tmp_path / "cbcl") in str(caught.value)
    assert not (tmp_path / "cache").exists()


@needs_cbcl
def test_the_faces_never_change() -> None:
    train, test = cbcl("train"), cbcl("test")
    assert (train.images.shape, test.images.shape) == ((2_429, 19, 19), (472, 19, 19))
    assert [found.fingerprint for found in (train, test)] == [
        "4018e219e3fcd36ae7c0248a360b3c425d8f0868cac8405eee91593529663d64",
        "bd21c9b01565ae7419d73c36027d4122f50e6311336593e8b3505ea596b709e8",
    ]
    assert overlap(train, test) == 0
    # The mean of grey levels as a plain reading of the files gives it.
    assert train.images.mean() / 255 == pytest.approx(0.49847, abs=1e-5)
    assert test.images.mean() / 255 == pytest.approx(0.46097, abs=1e-5)
