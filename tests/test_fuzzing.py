"""Files damaged by chance: each is read, or refused with one line, in bounded memory and time (rules 1 to 3).

Every case is a mutation of a sound file, drawn by a generator of a known seed. RESTORE_FUZZ_SECONDS has each test go on
with other seeds for so long; the message of a failure names the seed and the file that was written for it.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bad_images import GREY, GREY16, encoded, pages, png16
from measured import linux
from PIL import Image
from short_files import fax, many_pages, tiff

from restore.data import Wanted, gather, load
from restore.errors import RestoreError
from restore.images import read_picture

pytestmark = [pytest.mark.slow, linux]

# Of each kind of file, where no more time is granted.
CASES = 300
SECONDS = float(os.environ.get("RESTORE_FUZZ_SECONDS", "0"))
# What any one file of a few hundred bytes may take: the budget allows images of this many pixels, at some bytes each.
PIXELS = 1_000_000
MOST_MEMORY = 400 * 2**20
MOST_SECONDS = 20.0  # of the processor's, not of the clock's

BITS = np.random.default_rng(1).random((20, 24)) > 0.6
GREYS = np.random.default_rng(2).integers(0, 256, (4, 10, 12), dtype=np.uint8)
COLOURS = np.dstack([GREY] * 3)
# Numbers that mean something at the limits of what files hold, little- and big-endian.
NUMBERS = [0, 1, 7, 8, 9, 255, 256, 32767, 46000, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]
WORDS = [number.to_bytes(4, order) for number in NUMBERS for order in ("little", "big")]  # type: ignore[arg-type]
WORDS += [number.to_bytes(2, order) for number in NUMBERS[:10] for order in ("little", "big")]  # type: ignore[arg-type]


def npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def idx() -> bytes:
    return bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in GREYS.shape) + GREYS.tobytes()


def zipped(method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for number, image in enumerate(GREYS):
            archive.writestr(f"a/{number}.png", encoded(image))
    return stream.getvalue()


def tarred(mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for number, image in enumerate(GREYS):
            entry = tarfile.TarInfo(f"{number}.png")
            content = encoded(image)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


IMAGES: dict[str, Callable[[], bytes]] = {
    "png": lambda: encoded(GREY),
    "png-palette": lambda: encoded(Image.fromarray(GREY).convert("P"), transparency=bytes(range(256))),
    "png-16-bit": lambda: png16(np.dstack([GREY16, GREY16]), 4),
    "apng": lambda: pages("PNG"),
    "jpeg": lambda: encoded(GREY, "JPEG"),
    "jpeg-progressive": lambda: encoded(COLOURS, "JPEG", progressive=True, restart_marker_blocks=1),
    "tiff": lambda: encoded(GREY, "TIFF"),
    "tiff-16-bit": lambda: encoded(GREY16, "TIFF", compression="tiff_adobe_deflate"),
    "tiff-float": lambda: encoded((GREY / 255).astype(np.float32), "TIFF", compression="tiff_lzw"),
    "tiff-jpeg": lambda: encoded(Image.fromarray(COLOURS).convert("YCbCr"), "TIFF", compression="jpeg"),
    "tiff-fax": lambda: encoded(Image.fromarray(BITS), "TIFF", compression="group3"),
    "tiff-fax-strips": lambda: tiff(
        24, 20, [fax(BITS[:10], "group4"), fax(BITS[10:], "group4")], compression=4, bits=1, rows=10
    ),
    "tiff-tiles": lambda: tiff(24, 10, [bytes(256), bytes(256)], tile=16),
    "tiff-pages": lambda: many_pages(5),
    "bmp": lambda: encoded(GREY, "BMP"),
    "gif": lambda: pages("GIF"),
    "webp": lambda: encoded(np.full_like(GREY, 9), "WEBP"),
    "webp-lossless": lambda: pages("WEBP", lossless=True),
    "pgm": lambda: encoded(GREY, "PPM"),
    "pgm-plain": lambda: b"P2 # x\n4 3 255\n" + b" ".join(b"%d" % level for level in GREY.ravel()[:12]),
}
FILMS = ("apng", "gif", "webp-lossless", "tiff-pages")
SETS: dict[str, Callable[[], bytes]] = {
    "idx": idx,
    "idx-gzip": lambda: gzip.compress(idx()),
    "npy": lambda: npy(GREYS),
    "npy-float": lambda: npy(np.asfortranarray(GREYS / 255)),
    "zip": lambda: zipped(zipfile.ZIP_DEFLATED),
    "zip-stored": lambda: zipped(zipfile.ZIP_STORED),
    "zip-bzip2": lambda: zipped(zipfile.ZIP_BZIP2),
    "zip-lzma": lambda: zipped(zipfile.ZIP_LZMA),
    "tar": lambda: tarred("w:"),
    "tar-gzip": lambda: tarred("w:gz"),
    "tar-bzip2": lambda: tarred("w:bz2"),
    "tar-xz": lambda: tarred("w:xz"),
}


def mutated(sound: bytes, draw: np.random.Generator) -> bytes:
    """A file with one to four faults in it."""
    content = bytearray(sound)
    for _ in range(int(draw.integers(1, 5))):
        # Headers are short and decide about most, so half of the faults are among the first bytes.
        reach = len(content) if draw.random() < 0.5 else min(len(content), 200)
        at = int(draw.integers(0, max(1, reach)))
        other = int(draw.integers(0, len(sound)))
        length = int(draw.integers(1, 40))
        word = WORDS[draw.integers(len(WORDS))]
        match int(draw.integers(7)):
            case 0:
                content[at : at + 1] = bytes([int(draw.integers(256))])
            case 1 if content:
                content[min(at, len(content) - 1)] ^= 1 << int(draw.integers(8))
            case 2 | 3:
                content[at : at + len(word)] = word
            case 4:
                del content[at : at + length]
            case 5:
                content[at:at] = sound[other : other + length]
            case _ if draw.random() < 0.3:
                del content[at:]
    return bytes(content)


def most_memory() -> int:
    """The most bytes this process has held since it was last asked."""
    found = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]
    Path("/proc/self/clear_refs").write_text("5")  # begins to count anew
    return found


def survived(read: Callable[[Path], object], sound: bytes, place: Path) -> tuple[int, int]:
    """Read mutations of a file; how many were read, and how many refused."""
    read_ones = refused = 0
    began, seed = time.monotonic(), 0
    while seed < CASES or time.monotonic() - began < SECONDS:
        content = mutated(sound, np.random.default_rng(seed))
        place.write_bytes(content)
        most_memory()
        before, started = most_memory(), time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                read(place)
            read_ones += 1
        except RestoreError as fault:
            refused += 1
            assert str(fault).isprintable(), (seed, place)
        except BaseException as fault:
            raise AssertionError(f"seed {seed}, {place}: {type(fault).__name__}: {fault}") from fault
        assert time.process_time() - started < MOST_SECONDS, (seed, place)
        assert most_memory() - before < MOST_MEMORY, (seed, place)
        seed += 1
    return read_ones, refused


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def read(path: Path) -> None:
        picture = read_picture(path, name="x", max_pixels=PIXELS)
        assert picture.levels.ndim == 2 and 0 < picture.levels.size <= PIXELS

    def read_later(path: Path) -> None:
        read_picture(path, name="x", frame=2, max_pixels=PIXELS)

    sound = IMAGES[name]()
    (tmp_path / "x").write_bytes(sound)
    (read_later if name in FILMS else read)(tmp_path / "x")
    assert survived(read, sound, tmp_path / "x")[1] > 0
    survived(read_later, sound, tmp_path / "x")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", SETS)
def test_sets(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def read(path: Path) -> None:
        load(str(path), max_bad=2, max_pixels=PIXELS)
        gather(path, Wanted(shape=(5, 6)), max_bad=2, max_pixels=PIXELS)

    sound = SETS[name]()
    (tmp_path / "x").write_bytes(sound)
    read(tmp_path / "x")
    assert survived(read, sound, tmp_path / "x")[1] > 0
    assert sorted(tmp_path.iterdir()) == [tmp_path / "x"]
    assert capfd.readouterr() == ("", "")
