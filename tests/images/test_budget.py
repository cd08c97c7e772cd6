"""Small files with large contents (row 66): refused before memory is taken for what they promise."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bad_images import GREY, encoded
from measured import attacked, linux

from restore.data import Wanted, gather
from restore.errors import InputError

# What a fault that holds up before anything is decoded may take; what it holds up here takes two thousand.
MEGABYTES = 1 << 20


# --- sets of images ---


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def blank(side: int) -> bytes:
    """A black PNG: a thousandth of a byte for each pixel."""
    return encoded(np.zeros((side, side), np.uint8))


@pytest.mark.thorough
@linux
@pytest.mark.parametrize("how", ["load(path, max_pixels=5_000_000)", "gather(path, max_pixels=5_000_000)"])
def test_row66_an_archive_of_large_images(tmp_path: Path, how: str) -> None:
    few = {f"{number}.png": encoded(GREY // (number + 1)) for number in range(4)}
    content = blank(2000)
    harmless = zipped(tmp_path / "a.zip", few)
    bomb = zipped(tmp_path / "b.zip", {f"{number}.png": content for number in range(60)})
    assert len(bomb.read_bytes()) < 22_000
    said, grown = attacked(how, harmless, bomb, "from restore.data import gather, load")
    assert said.startswith(f"InputError {bomb}: its images have more than 100000000 pixels together")
    assert "max_pixels" in said
    # The budget in bytes, and what decoding one image takes; all of them are 240 million, and were held twice.
    assert grown < 100_000_000 + 50_000_000


def idx_of(shape: tuple[int, int, int]) -> bytes:
    return bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in shape)


def gzipped(head: bytes, zeros: int) -> bytes:
    """A gzip file of a head and so many million zeros, made without compressing them all; its checksum is wrong."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    million = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + million * zeros + packer.flush()


@linux
@pytest.mark.parametrize("million", [1_001, 9_300])
def test_row66_a_gzipped_idx_file_of_zeros(tmp_path: Path, million: int) -> None:
    harmless, bomb = tmp_path / "a.gz", tmp_path / "b.gz"
    harmless.write_bytes(gzip.compress(idx_of((3, 2, 2)) + bytes(12)))
    bomb.write_bytes(gzipped(idx_of((million, 1000, 1000)), million))
    said, grown = attacked("load(path)", harmless, bomb, "from restore.data import load")
    assert said.startswith(f"InputError {bomb}: its images have more than 1000000000 pixels together")
    assert grown < 50 * MEGABYTES


@pytest.mark.thorough
@linux
def test_row66_an_idx_file_is_held_once(tmp_path: Path) -> None:
    harmless, large = tmp_path / "a.gz", tmp_path / "b.gz"
    harmless.write_bytes(gzip.compress(idx_of((3, 2, 2)) + bytes(12)))
    large.write_bytes(gzipped(idx_of((300, 1000, 1000)), 300))
    code = "from pathlib import Path\nfrom restore.data.arrays import read_idx"
    said, grown = attacked("read_idx(Path(path))", harmless, large, code)
    assert "CRC" in said  # after all has been unpacked
    assert grown < 330_000_000
    # And a header that promises more than there is takes no memory for the rest.
    large.write_bytes(gzipped(idx_of((900, 1000, 1000)), 1) + bytes(1_000_000))
    said, grown = attacked("read_idx(Path(path))", harmless, large, code)
    assert said.startswith("InputError")
    assert grown < 50 * MEGABYTES


@linux
def test_row66_an_array_that_is_a_hole_on_the_disk(tmp_path: Path) -> None:
    harmless, hole = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(harmless, np.stack([GREY] * 3))
    with hole.open("wb") as stream:
        head = {"descr": "|u1", "fortran_order": False, "shape": (2000, 1000, 1000)}
        np.lib.format.write_array_header_1_0(stream, head)
        stream.truncate(stream.tell() + 2_000_000_000)
    said, grown = attacked("load(path)", harmless, hole, "from restore.data import load")
    assert said.startswith(f"InputError {hole}: its images have more than 1000000000 pixels together")
    assert grown < 50 * MEGABYTES


@pytest.mark.thorough
@linux
@pytest.mark.parametrize("size", [(7, 2_000_000), (2_000_000, 7)], ids=["wide", "high"])
def test_row66_images_much_longer_than_wide(tmp_path: Path, size: tuple[int, int]) -> None:
    harmless, thin = tmp_path / "few", tmp_path / "thin"
    for folder, shape in ((harmless, (28, 28)), (thin, size)):
        folder.mkdir()
        for number in range(3):
            (folder / f"{number}.png").write_bytes(encoded(np.full(shape, 60 * number, np.uint8)))
    said, grown = attacked("gather(path, Wanted((28, 28)))", harmless, thin, "from restore.data import Wanted, gather")
    assert said == "accepted"
    # Three images of 14 million pixels, and floats of one of them; weights for each pixel and cell took thousands.
    assert grown < 800 * MEGABYTES


def test_row66_many_small_images_that_would_be_made_large(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {f"{number}.png": encoded(GREY[:2, :2] + number) for number in range(30)})
    assert len(gather(str(path), Wanted(shape=(8, 8)), max_pixels=100).training.images) > 1
    with pytest.raises(InputError, match=r"more than 1900 pixels together, 20 times .*above 95 if"):
        gather(str(path), Wanted(shape=(8, 8)), max_pixels=95)


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_row66_the_budget_is_an_option_of_every_command_that_reads_a_set(
    command: str, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (50, 28, 28), dtype=np.uint8))
    words = {
        "train": ["train", path, "--name", "x", "-o", tmp_path / "x", "--run", tmp_path / "run"],
        "evaluate": ["evaluate", "tap-mnist-25", "--data", path, "--task", "flip:0.1"],
    }[command]
    assert run(*words, "--max-pixels", 50 * 28 * 28 // 20 - 1) == 3
    said = capsys.readouterr().err
    assert f"{path}: its images have more than" in said and "raise --max-pixels above 1959 if" in said
    assert run(*words, "--max-pixels", 0) == 2
