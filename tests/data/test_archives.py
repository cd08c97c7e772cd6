"""Archives of images: read as the folder they were made of, and what dangerous or damaged ones get."""

from __future__ import annotations

import shutil
import stat
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bad_images import encoded
from data_sets import zipped
from PIL import Image

from restore.data import gather, load
from restore.data.archives import MAX_MEMBER_BYTES, members
from restore.errors import InputError, TrainingError

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)


def folder_of(place: Path, images: np.ndarray = IMAGES) -> Path:
    place.mkdir(parents=True)
    for number, pixels in enumerate(images):
        (place / f"{number:03}.png").write_bytes(encoded(pixels))
    return place


PICTURES = {f"{number}.png": encoded(pixels) for number, pixels in enumerate(IMAGES)}


# --- sound ones ---


@pytest.mark.parametrize("inside", [".", "parts"], ids=["flat", "in-a-folder"])
def test_an_archive_is_what_its_folder_is(tmp_path: Path, inside: str) -> None:
    folder = folder_of(tmp_path / "in" / "parts")
    (folder / "README.txt").write_text("no image")
    (folder / "._000.png").write_text("what a file manager leaves")
    where = folder.parent if inside == "parts" else folder
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", where, inside)
    np.testing.assert_array_equal(load(archive).images, IMAGES)
    assert load(archive).notes == ()
    unpacked, gathered = gather(folder), gather(archive)
    np.testing.assert_array_equal(gathered.training.images, unpacked.training.images)
    np.testing.assert_array_equal(gathered.held_out.images, unpacked.held_out.images)
    assert gathered.notes == unpacked.notes


@pytest.mark.parametrize("top", ["", "parts/"])
def test_splits_are_those_of_its_folders(tmp_path: Path, top: str) -> None:
    members = {
        f"{top}{'test' if number > 3 else 'train'}/{name}": PICTURES[name] for number, name in enumerate(PICTURES)
    }
    path = zipped(tmp_path / "x", members)
    np.testing.assert_array_equal(load(str(path)).images, IMAGES[:4])
    np.testing.assert_array_equal(load(str(path), split="test").images, IMAGES[4:])
    assert load(str(path)).notes == ("only the images in its folder train are used",)


def test_an_archive_without_images_is_refused(tmp_path: Path) -> None:
    notes = {"notes.txt": b"hello"}
    for path in (zipped(tmp_path / "x", {}), zipped(tmp_path / "y", notes)):
        with pytest.raises(TrainingError):
            load(str(path))


# --- dangerous ones ---


def test_a_link_in_a_zip_archive_is_not_followed(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("a.png")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    Image.fromarray(IMAGES[0]).save(tmp_path / "outside.png")
    path = zipped(tmp_path / "x.zip", PICTURES)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(entry, str(tmp_path / "outside.png"))
    assert len(load(str(path), max_bad=1).images) == 7


def test_what_is_declared_is_judged_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "x.gz", {**PICTURES, "big.png": bytes(MAX_MEMBER_BYTES + 1)})
    tracemalloc.start()
    with pytest.raises(InputError):
        load(str(bomb))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("limit", ["files", "file_bytes", "all_bytes"])
def test_an_archive_may_hold_as_much_as_its_limits_say(limit: str, tmp_path: Path) -> None:
    path, sizes = zipped(tmp_path / "x", PICTURES), [len(content) for content in PICTURES.values()]
    most = {"files": len(sizes), "file_bytes": max(sizes), "all_bytes": sum(sizes)}[limit]
    assert len(list(members(path, **{limit: most}))) == len(sizes)
    with pytest.raises(InputError):
        list(members(path, **{limit: most - 1}))


def test_a_zip_member_longer_than_it_says_is_left_out(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {**PICTURES, "a.png": bytes(1_000_000)})
    lying = path.read_bytes().replace((1_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(lying)
    with pytest.raises(TrainingError):
        load(str(path))
    np.testing.assert_array_equal(load(str(path), max_bad=1).images, IMAGES)


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.png": PICTURES["0.png"]})
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + place] |= 1
    path.write_bytes(content)
    with pytest.raises(TrainingError):
        load(str(path))
