"""Data sets: reading, downloading, and what bad ones get (rows 45-48 of the table of bad inputs)."""

from __future__ import annotations

import gzip
import hashlib
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from mnist_data import mnist, needs_mnist
from PIL import Image

from restore.data import Dataset, binarise, load, loading, overlap
from restore.data.download import RemoteFile, fetch
from restore.data.idx import read_idx
from restore.data.named import NamedSet
from restore.errors import InputError, OutputError, TrainingError, UsageError

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)


def idx_bytes(images: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{images.ndim}I", 0, 0, 8, images.ndim, *images.shape) + images.tobytes()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def save_pictures(folder: Path, images: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{number:03}.png")
    return folder


# --- the data set itself ---


def test_binarise_is_strictly_above_the_threshold() -> None:
    images = np.array([[[0, 127], [128, 255]]], dtype=np.uint8)
    result = binarise(images)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[0, 0, 1, 1]])
    np.testing.assert_array_equal(binarise(images, 0), [[0, 1, 1, 1]])
    assert binarise(np.empty((0, 3, 3), dtype=np.uint8)).shape == (0, 9)


@pytest.mark.parametrize("threshold", [-1, 255])
def test_thresholds_that_leave_one_colour_are_refused(threshold: int) -> None:
    with pytest.raises(UsageError, match=r"0\.\.254"):
        binarise(IMAGES, threshold)


def test_fingerprint_tells_any_change() -> None:
    pixel = IMAGES.copy()
    pixel[3, 2, 1] ^= 1
    variants = [IMAGES, pixel, IMAGES[::-1], IMAGES[:-1], IMAGES.reshape(7, 4, 5)]
    prints = {Dataset(images, "x", "train").fingerprint for images in variants}
    assert len(prints) == len(variants)
    assert Dataset(IMAGES.copy(), "y", "test", ("note",)).fingerprint == Dataset(IMAGES, "x", "train").fingerprint


def test_notes_count_constant_images_duplicates_and_constant_pixels(tmp_path: Path) -> None:
    images = IMAGES.copy()
    images[2], images[4], images[5] = 9, images[0], images[0]
    images[:, 0, 0] = 9
    np.save(tmp_path / "a.npy", images)
    assert load(str(tmp_path / "a.npy")).notes == (
        "1 of 7 images have the same value in every pixel",
        "2 of 7 images repeat an earlier one",
        "1 of 20 pixels have the same value in every image",
    )


def test_the_first_images_of_a_set() -> None:
    whole = Dataset(IMAGES, "x", "train", ("note",))
    assert whole.first(0) is whole
    few = whole.first(2)
    assert np.array_equal(few.images, IMAGES[:2]) and few.notes == ("note",) and few.fingerprint != whole.fingerprint
    with pytest.raises(TrainingError, match=f"x: holds {len(IMAGES)} images, not {len(IMAGES) + 1}; lower count"):
        whole.first(len(IMAGES) + 1)


def test_overlap_counts_test_images_seen_in_training() -> None:
    train = Dataset(IMAGES, "x", "train")
    assert overlap(train, Dataset(IMAGES[[1, 1, 3]], "x", "test")) == 3
    assert overlap(train, Dataset(255 - IMAGES, "x", "test")) == 0
    assert overlap(train, Dataset(IMAGES.reshape(7, 4, 5), "x", "test")) == 0


def test_loading_data_does_not_load_torch() -> None:
    code = "import sys, restore.data; sys.exit(not {'torch', 'skimage', 'scipy'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False).returncode == 0


# --- idx files ---


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_idx_files_are_read_whatever_their_name(tmp_path: Path, pack: type) -> None:
    path = write(tmp_path / "digits", pack(idx_bytes(IMAGES)))
    np.testing.assert_array_equal(load(str(path)).images, IMAGES)


BAD_IDX = {
    "no-bytes": (b"", "must begin"),
    "text": (b"hello, world", "must begin"),
    "header-cut": (idx_bytes(IMAGES)[:9], "within its header"),
    "truncated": (idx_bytes(IMAGES)[:-1], "more than the file can hold|fewer bytes"),
    "padded": (idx_bytes(IMAGES) + b"x", "more bytes"),
    "labels": (idx_bytes(np.zeros(9, dtype=np.uint8)), "labels"),
    "floats": (b"\0\0\x0d\3" + bytes(40), "must begin"),
    "huge": (struct.pack(">BBBB3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "promises"),
    "gzip-huge": (gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, *[2**32 - 1] * 3)), "promises"),
    "gzip-truncated": (gzip.compress(idx_bytes(IMAGES))[:-12], "damaged"),
    "gzip-bad-checksum": (gzip.compress(idx_bytes(IMAGES))[:-8] + bytes(8), "damaged"),
    "gzip-flipped": (gzip.compress(idx_bytes(IMAGES))[:14] + bytes(60), "damaged|fewer"),
    "gzip-padded": (gzip.compress(idx_bytes(IMAGES) + bytes(10**6)), "more bytes"),
}


@pytest.mark.parametrize("name", BAD_IDX)
def test_bad_idx_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    content, fault = BAD_IDX[name]
    path = write(tmp_path / "x-idx3-ubyte", content)
    with pytest.raises(InputError, match=fault) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def test_every_truncation_of_a_gzipped_idx_file_is_noticed(tmp_path: Path) -> None:
    whole = gzip.compress(idx_bytes(IMAGES[:1]))
    for length in range(len(whole)):
        with pytest.raises(InputError):
            read_idx(write(tmp_path / "x", whole[:length]))


# --- .npy files ---


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (IMAGES, IMAGES),
        (np.asfortranarray(IMAGES), IMAGES),
        (IMAGES > 99, np.where(IMAGES > 99, 255, 0)),
        ((IMAGES > 99).astype(np.uint8), np.where(IMAGES > 99, 255, 0)),
        (IMAGES / 255, IMAGES),
        ((IMAGES / 255).astype(np.float32), IMAGES),
    ],
    ids=["uint8", "fortran", "bool", "uint8-01", "float64", "float32"],
)
def test_npy_types(tmp_path: Path, values: np.ndarray, expected: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", values)
    images = load(str(tmp_path / "a.npy")).images
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images, expected)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (IMAGES / 240, "outside"),
        (np.where(IMAGES > 200, np.nan, 0.5), "NaN"),
        (IMAGES.astype(np.int64), "int64"),
        (IMAGES[0], "shape"),
        (IMAGES.astype(object), "not a usable"),
    ],
    ids=["range", "nan", "int64", "one-image", "pickle"],
)
def test_bad_npy_is_refused(tmp_path: Path, values: np.ndarray, fault: str) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match=fault) as caught:
        load(str(tmp_path / "a.npy"))
    assert "a.npy" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_truncated_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    whole = (tmp_path / "a.npy").read_bytes()
    for length in (6, 8, 60, len(whole) - 1):
        with pytest.raises(InputError):
            load(str(write(tmp_path / "b.npy", whole[:length])))


def test_every_damaged_byte_of_a_npy_header_is_survived(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    whole = (tmp_path / "a.npy").read_bytes()
    for place in range(6, 80):
        for value in (0, ord("("), ord("'"), 255):
            damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                load(str(write(tmp_path / "b.npy", damaged)))
            except InputError as fault:
                assert "\n" not in str(fault)  # some of these files are still good


# --- folders of images ---


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    save_pictures(tmp_path / "b", IMAGES[:3])
    save_pictures(tmp_path / "a", IMAGES[3:])
    write(tmp_path / "README.txt", b"not an image")
    write(tmp_path / "a" / "._000.png", b"what a file manager leaves")
    found = load(str(tmp_path))
    np.testing.assert_array_equal(found.images, np.concatenate([IMAGES[3:], IMAGES[:3]]))
    assert found.notes == ()


def test_transparency_deep_grey_and_colour(tmp_path: Path) -> None:
    pair = np.stack([IMAGES[0], np.full_like(IMAGES[0], 200)], axis=2)
    Image.fromarray(pair).save(tmp_path / "alpha.png")
    Image.fromarray(IMAGES[1].astype(np.uint16) * 257).save(tmp_path / "deep.png")
    Image.fromarray(IMAGES[2:5].transpose(1, 2, 0).copy()).save(tmp_path / "rgb.png")
    with pytest.raises(TrainingError, match=r"1 of 3 images .*rgb\.png"):
        load(str(tmp_path))
    found = load(str(tmp_path), max_bad=1)
    np.testing.assert_array_equal(found.images, IMAGES[:2])
    assert "transparency is ignored (1 images)" in found.notes
    assert any("rgb.png" in note and "colour" in note for note in found.notes)


def test_folders_named_train_and_test_are_the_splits(tmp_path: Path) -> None:
    save_pictures(tmp_path / "train", IMAGES[:4])
    save_pictures(tmp_path / "test", IMAGES[4:])
    np.testing.assert_array_equal(load(str(tmp_path)).images, IMAGES[:4])
    np.testing.assert_array_equal(load(str(tmp_path), split="test").images, IMAGES[4:])


@pytest.mark.parametrize("split", ["train", "test"])
def test_row_45_empty(tmp_path: Path, split: str) -> None:
    np.save(tmp_path / "none.npy", IMAGES[:0])
    write(tmp_path / "none.idx", idx_bytes(IMAGES[:0]))
    (tmp_path / "folder").mkdir()
    for name in ("none.npy", "none.idx", "folder"):
        with pytest.raises(TrainingError, match=f"{name}: the data set is empty"):
            load(str(tmp_path / name), split=split)  # type: ignore[arg-type]


def test_row_45_one_image(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", IMAGES[:1])
    with pytest.raises(TrainingError, match=r"one\.npy: one image is not enough"):
        load(str(tmp_path / "one.npy"))
    assert len(load(str(tmp_path / "one.npy"), split="test").images) == 1


def test_row_45_all_corrupt(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        write(tmp_path / name, b"")
    with pytest.raises(TrainingError, match="none of its 2 images"):
        load(str(tmp_path), max_bad=9)


def test_row_46_some_corrupt(tmp_path: Path) -> None:
    save_pictures(tmp_path, IMAGES)
    write(tmp_path / "bad[x].png", b"not a picture")
    broken = (tmp_path / "000.png").read_bytes()
    write(tmp_path / "cut.png", broken[: len(broken) // 2])
    with pytest.raises(TrainingError, match=r"2 of 9 images .*bad\[x\]\.png, cut\.png.*--max-bad 2"):
        load(str(tmp_path), max_bad=1)
    found = load(str(tmp_path), max_bad=2)
    np.testing.assert_array_equal(found.images, IMAGES)
    assert len(found.notes) == 2
    assert "bad[x].png" in found.notes[0]
    assert "cut.png" in found.notes[1]


def test_row_47_mixed_sizes(tmp_path: Path) -> None:
    save_pictures(tmp_path, IMAGES)
    Image.fromarray(IMAGES[0].T).save(tmp_path / "turned.png")
    with pytest.raises(TrainingError, match=r"000\.png has 4x5, turned\.png has 5x4"):
        load(str(tmp_path))


# --- what a source may be ---


@pytest.mark.parametrize("source", ["", "no/such/file", "x" * 300, "nul\0byte"])
def test_unknown_sources(source: str) -> None:
    with pytest.raises(InputError, match="neither a path nor a known data set"):
        load(source)


def test_a_misspelt_name_gets_the_near_one() -> None:
    with pytest.raises(InputError, match="did you mean mnist"):
        load("mnits")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a data set"):
        load(str(write(tmp_path / "notes.txt", b"some text")))
    with pytest.raises(InputError, match="not a data set"):
        load(str(write(tmp_path / "empty.npy", b"")))


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="train, test"):
        load("mnist", split="valid")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_bad"):
        load("mnist", max_bad=-1)


# --- downloads ---


@dataclass
class Mirror:
    """A web server on this machine: what it answers per path, and what it was asked."""

    address: str
    answers: dict[str, tuple[int, bytes]]
    promised: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "*")
    state = Mirror("", {})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            status, body = state.answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(state.promised.get(self.path, len(body))))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


CONTENT = gzip.compress(idx_bytes(IMAGES), mtime=0)


def remote(*mirrors: str) -> RemoteFile:
    return RemoteFile("x-ubyte.gz", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), mirrors)


def test_a_download_is_kept_and_not_repeated(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/a/x-ubyte.gz"] = (200, CONTENT)
    file, folder = remote(mirror.address + "/a/"), tmp_path / "new" / "folder"
    assert fetch(file, folder).read_bytes() == CONTENT
    assert fetch(file, folder).read_bytes() == CONTENT
    assert mirror.asked == ["/a/x-ubyte.gz"]
    assert [path.name for path in folder.iterdir()] == ["x-ubyte.gz"]


def test_the_next_mirror_is_tried(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/wrong/x-ubyte.gz"] = (200, b"x" * len(CONTENT))
    mirror.answers["/good/x-ubyte.gz"] = (200, CONTENT)
    places = [f"{mirror.address}/{name}/" for name in ("gone", "wrong", "good")]
    assert fetch(remote(*places), tmp_path).read_bytes() == CONTENT
    assert mirror.asked == ["/gone/x-ubyte.gz", "/wrong/x-ubyte.gz", "/good/x-ubyte.gz"]


def flipped(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


@pytest.mark.parametrize(
    ("status", "body", "promised", "fault"),
    [
        (200, flipped(CONTENT), None, "checksum mismatch"),
        (200, CONTENT[:50], None, "checksum mismatch .50 of"),
        (200, CONTENT[:50], len(CONTENT), "checksum mismatch .50 of"),
        (200, CONTENT + b"x", None, "checksum mismatch"),
        (200, b"", None, "checksum mismatch"),
        (404, b"", None, "Not Found"),
        (500, CONTENT, None, "Internal Server Error"),
    ],
    ids=["flipped-bit", "short", "cut-off", "long", "empty", "404", "500"],
)
def test_bad_downloads_leave_nothing(
    mirror: Mirror, tmp_path: Path, status: int, body: bytes, promised: int | None, fault: str
) -> None:
    mirror.answers["/x-ubyte.gz"] = (status, body)
    if promised is not None:
        mirror.promised["/x-ubyte.gz"] = promised
    write(tmp_path / "x-ubyte.gz", b"an older, damaged copy")
    with pytest.raises(InputError, match=fault) as caught:
        fetch(remote(mirror.address), tmp_path)
    assert mirror.address in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_copy_in_the_cache_is_replaced(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/x-ubyte.gz"] = (200, CONTENT)
    write(tmp_path / "x-ubyte.gz", flipped(CONTENT))
    assert fetch(remote(mirror.address), tmp_path).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_made_is_an_output_error(mirror: Mirror, tmp_path: Path) -> None:
    mirror.answers["/x-ubyte.gz"] = (200, CONTENT)
    write(tmp_path / "file", b"")
    with pytest.raises(OutputError, match="cannot be made"):
        fetch(remote(mirror.address), tmp_path / "file" / "folder")


@pytest.fixture
def named(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A data set "tiny" with one file, published by the mirror; no own copy, and a cache of its own."""
    file = remote(mirror.address)
    monkeypatch.setitem(
        loading.NAMED, "tiny", NamedSet("tiny", {"train": (file,)}, lambda _, paths: read_idx(paths[0]))
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RESTORE_DATA", raising=False)
    mirror.answers["/x-ubyte.gz"] = (200, CONTENT)
    return mirror


def test_named_sets_are_downloaded_once(named: Mirror, tmp_path: Path) -> None:
    for _ in range(2):
        found = load("tiny")
        np.testing.assert_array_equal(found.images, IMAGES)
        assert (found.name, found.split) == ("tiny", "train")
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
    with pytest.raises(InputError, match=r"tiny: x-ubyte\.gz: could not be downloaded .*RESTORE_DATA") as caught:
        load("tiny")
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("RESTORE_DATA", str(tmp_path / "mine"))
    with pytest.raises(InputError, match=f"put the file into {tmp_path}/mine/tiny"):
        load("tiny")


def test_no_network_at_all_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(InputError, match="refused"):
        fetch(remote("http://127.0.0.1:9"), tmp_path)


def test_mnist_of_another_shape_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "mnist" / "train-images-idx3-ubyte.gz", CONTENT)
    with pytest.raises(InputError, match=r"shape \(7, 5, 4\)"):
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
