"""Files damaged by chance, and files made to harm: each is read, or refused with one line, in bounded memory and time.

Every case is a mutation of a sound file, drawn by a generator of a known seed. A few of each kind are tried by default,
many by -m slow. The message of a failure names the seeds and the file that was written last. For other seeds, and 60 s
a kind:

    RESTORE_FUZZ_SEED=1000000 RESTORE_FUZZ_SECONDS=60 pytest -m slow tests/test_fuzzing.py --basetemp=/dev/shm/fuzzing
"""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from bad_images import GREY, GREY16, encoded, fax, huge_tile, many_pages, many_strips, many_tags, pages, png16, tiff
from data_sets import idx_bytes
from lessons import GOOD
from PIL import Image
from processes import HANG, linux

from restore import zoo
from restore.data import Gathering, Limits, gather, load
from restore.errors import RestoreError
from restore.images import Book, read_picture
from restore.inference.onnx.contract import SIZE, sealed
from restore.inference.onnx.engine import OnnxEngine
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run import checkpoint

pytestmark = linux

SEED = int(os.environ.get("RESTORE_FUZZ_SEED", "0"))
SECONDS = float(os.environ.get("RESTORE_FUZZ_SECONDS", "0"))
# So many cases share one look at memory, which takes as long as a small image.
ROUND = 50
# What any one file of a few hundred bytes may take: the budget allows images of this many pixels, at some bytes each.
PIXELS = 1_000_000
MOST_MEMORY = 400 * 2**20
MOST_SECONDS = 10.0  # of the processor's, not of the clock's

BITS = np.random.default_rng(1).random((20, 24)) > 0.6
GREYS = np.random.default_rng(2).integers(0, 256, (4, 10, 12), dtype=np.uint8)
COLOURS = np.dstack([GREY] * 3)
# Numbers that mean something at the limits of what files hold, little- and big-endian.
NUMBERS = [0, 1, 7, 8, 9, 255, 256, 32767, 46000, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]
WORDS = [number.to_bytes(4, order) for number in NUMBERS for order in ("little", "big")]  # type: ignore[arg-type]
WORDS += [number.to_bytes(2, order) for number in NUMBERS[:10] for order in ("little", "big")]  # type: ignore[arg-type]
# What texts are damaged by: TOML, JSON and the headers of numpy.
TEXTS = [b"-1", b"1e999", b"nan", b"true", b'""', b"[]", b"{}", b"[[", b"9" * 400, b"\xff", b"\0", b"\x1b[31m", b"\n"]


# --- sound files ---


@dataclass(frozen=True)
class Kind:
    """A kind of file: a sound one, what reads it, how many cases are tried by default, and where it is written."""

    make: Callable[[], bytes]
    read: Callable[[Path], object]
    few: int
    many: int = 1500
    name: str = "x"
    seal: Callable[[bytes], bytes] = bytes


def npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, x=GREYS / 255, y=np.arange(4))
    return stream.getvalue()


def zipped(method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for number, image in enumerate(GREYS):
            archive.writestr(f"a/{number}.png", encoded(image))
    return stream.getvalue()


def pdf(*forms: bytes) -> bytes:
    """A PDF whose page draws the last of these forms, /F, as each form draws the one before it."""
    parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Contents %d 0 R/Resources<</XObject<</F %d 0 R>>>>>>"
    parts.append(page % (len(forms) + 4, len(forms) + 3))
    for number, body in enumerate([*forms, b"/F Do"]):
        head = b"<</Type/XObject/Subtype/Form/BBox[0 0 72 72]/Resources<</XObject<</F %d 0 R>>>>" % (number + 3)
        parts.append(head + b"/Length %d>>stream\n" % len(body) + body + b"\nendstream")
    content = b"%PDF-1.4\n" + b"".join(b"%d 0 obj" % (at + 1) + part + b"\nendobj\n" for at, part in enumerate(parts))
    return content + b"trailer<</Root 1 0 R/Size %d>>\n%%%%EOF" % (len(parts) + 1)


@cache
def prior() -> tuple[bytes, bytes]:
    """The weights and the graph of a small prior; the graph without its checksum, which would show every change."""
    place = zoo.published_folder() / "tap-mnist-25"
    return (place / zoo.WEIGHTS).read_bytes(), (place / zoo.GRAPH).read_bytes()[:-SIZE]


@cache
def saved_checkpoint() -> bytes:
    with TemporaryDirectory() as folder:
        tensors, facts = {"weights": torch.ones(3, 2)}, {"epoch": 3, "losses": [0.5, 0.25]}
        checkpoint.save(Path(folder), checkpoint.Checkpoint(7, tensors, facts))
        return (Path(folder) / checkpoint.NAME).read_bytes()


def checkpoint_of(facts: str) -> bytes:
    return checkpoint.to_bytes({"weights": torch.ones(3, 2)}, {"step": "7", "facts": facts})


# --- readers ---


def read_image(path: Path) -> None:
    picture = read_picture(path, name="x", max_pixels=PIXELS)
    assert picture.levels.ndim == 2 and 0 < picture.levels.size <= PIXELS


def read_film(path: Path) -> None:
    with closing(Book.of(path.read_bytes(), "x", PIXELS)) as book:
        assert book.count
    read_picture(path, name="x", frame=2, max_pixels=PIXELS)


def read_set(path: Path) -> None:
    load(str(path), max_bad=2, max_pixels=PIXELS)
    gather(path, Gathering(shape=(5, 6)), limits=Limits(None, 2, PIXELS))


def read_weights(path: Path) -> None:
    zoo.load(path.parent)


def read_graph(path: Path) -> None:
    (path.parent / zoo.WEIGHTS).write_bytes(prior()[0])
    OnnxEngine.load(path.parent)


def read_checkpoint(path: Path) -> None:
    checkpoint.facts(path.parent)
    checkpoint.load(path.parent)


def of_images(make: Callable[[], bytes]) -> Kind:
    return Kind(make, read_image, 9)


def of_sets(make: Callable[[], bytes]) -> Kind:
    return Kind(make, read_set, 8)


KINDS: dict[str, Kind] = {
    "png": of_images(lambda: encoded(GREY)),
    "png-palette": of_images(lambda: encoded(Image.fromarray(GREY).convert("P"), transparency=bytes(range(256)))),
    "png-16-bit": of_images(lambda: png16(np.dstack([GREY16, GREY16]), 4)),
    "apng": Kind(lambda: pages("PNG"), read_film, 8),
    "jpeg": of_images(lambda: encoded(GREY, "JPEG")),
    "jpeg-progressive": of_images(lambda: encoded(COLOURS, "JPEG", progressive=True, restart_marker_blocks=1)),
    "tiff": of_images(lambda: encoded(GREY, "TIFF")),
    "tiff-16-bit": of_images(lambda: encoded(GREY16, "TIFF", compression="tiff_adobe_deflate")),
    "tiff-float": of_images(lambda: encoded((GREY / 255).astype(np.float32), "TIFF", compression="tiff_lzw")),
    "tiff-jpeg": of_images(lambda: encoded(Image.fromarray(COLOURS).convert("YCbCr"), "TIFF", compression="jpeg")),
    "tiff-fax": of_images(lambda: encoded(Image.fromarray(BITS), "TIFF", compression="group3")),
    "tiff-fax-strips": of_images(
        lambda: tiff(24, 20, [fax(BITS[:10], "group4"), fax(BITS[10:], "group4")], compression=4, bits=1, rows=10)
    ),
    "tiff-tiles": of_images(lambda: tiff(24, 10, [bytes(256), bytes(256)], tile=16)),
    "tiff-pages": Kind(lambda: many_pages(5), read_film, 8),
    "bmp": of_images(lambda: encoded(GREY, "BMP")),
    "gif": Kind(lambda: pages("GIF"), read_film, 8),
    "webp": of_images(lambda: encoded(np.full_like(GREY, 9), "WEBP")),
    "webp-lossless": Kind(lambda: pages("WEBP", lossless=True), read_film, 8),
    "pgm": of_images(lambda: encoded(GREY, "PPM")),
    "pgm-plain": of_images(lambda: b"P2 # x\n4 3 255\n" + b" ".join(b"%d" % level for level in GREY.ravel()[:12])),
    "pdf": Kind(lambda: pdf(b"0 0 9 9 re f", b"/F Do 20 20 9 9 re f"), read_image, 9),
    "idx": of_sets(lambda: idx_bytes(GREYS)),
    "idx-gzip": of_sets(lambda: gzip.compress(idx_bytes(GREYS))),
    "npy": of_sets(lambda: npy(GREYS)),
    "npy-float": of_sets(lambda: npy(np.asfortranarray(GREYS / 255))),
    "npz": of_sets(npz),
    "zip": of_sets(lambda: zipped(zipfile.ZIP_DEFLATED)),
    "zip-stored": of_sets(lambda: zipped(zipfile.ZIP_STORED)),
    "zip-bzip2": of_sets(lambda: zipped(zipfile.ZIP_BZIP2)),
    "zip-lzma": of_sets(lambda: zipped(zipfile.ZIP_LZMA)),
    "safetensors": Kind(lambda: prior()[0], read_weights, 12, name=zoo.WEIGHTS),
    "onnx": Kind(lambda: prior()[1], read_graph, 5, 400, zoo.GRAPH, sealed),
    "toml": Kind(GOOD.encode, read_recipe, 20),
    "checkpoint": Kind(saved_checkpoint, read_checkpoint, 12, name=checkpoint.NAME),
}


# --- by chance ---


def mutated(sound: bytes, draw: np.random.Generator) -> bytes:
    """A file with one to four faults: other bytes, numbers or words; parts missing, repeated or elsewhere; no end."""
    content = bytearray(sound)
    for _ in range(int(draw.integers(1, 5))):
        # Headers are short and decide about most, so half of the faults are among the first bytes.
        reach = len(content) if draw.random() < 0.5 else min(len(content), 200)
        at = int(draw.integers(0, max(1, reach)))
        other = int(draw.integers(0, len(sound)))
        length = int(draw.integers(1, 40))
        word = WORDS[draw.integers(len(WORDS))]
        match int(draw.integers(9)):
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
            case 6:
                content[at:at] = sound[other : other + length] * int(draw.integers(2, 200))
            case 7:
                text = TEXTS[draw.integers(len(TEXTS))]
                content[at : at + (len(text) if draw.random() < 0.5 else 0)] = text
            case _ if draw.random() < 0.3:
                del content[at:]
    return bytes(content)


def most_memory() -> int:
    """The most bytes this process has held since it was last asked."""
    most = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) * 1024  # type: ignore[index]
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # begins to count anew
    return most


@contextmanager
def bounded_memory(case: object) -> Iterator[None]:
    most_memory()
    before = most_memory()
    yield
    assert most_memory() - before < MOST_MEMORY, case


def refused(read: Callable[[Path], object], path: Path, case: object) -> bool:
    """Read a file in time; True if it is refused with one line."""
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(path)
        fault = ""
    except RestoreError as caught:
        fault = str(caught)
        assert fault and fault.isprintable(), (case, path)
    except BaseException as caught:
        raise AssertionError(f"{case}, {path}: {type(caught).__name__}: {caught}") from caught
    assert time.process_time() - started < MOST_SECONDS, (case, path)
    return bool(fault)


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("name", KINDS)
def test_files_changed_by_chance(
    name: str, many: bool, tmp_path: Path, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    if name == "pdf":
        pytest.importorskip("pypdfium2")
        request.getfixturevalue("foreseen")
    kind = KINDS[name]
    place, sound = tmp_path / kind.name, kind.make()
    place.write_bytes(kind.seal(sound))
    kind.read(place)
    left = sorted(tmp_path.iterdir())
    began, wrong, seed, count = time.monotonic(), 0, SEED, kind.many if many else kind.few
    while seed < SEED + count or time.monotonic() - began < SECONDS:
        seeds = range(seed, seed + min(ROUND, count))
        with bounded_memory((seeds, tmp_path)):
            for seed in seeds:
                place.write_bytes(kind.seal(mutated(sound, np.random.default_rng(seed))))
                wrong += refused(kind.read, place, seed)
        seed += 1
    assert wrong > 0 or not many
    assert sorted(tmp_path.iterdir()) == left
    assert capfd.readouterr() == ("", "")
    if SECONDS:
        with capfd.disabled():
            print(f"{name}: {seed - SEED} cases, {wrong} refused", flush=True)


# --- made to harm ---


def idx_of(*sizes: int) -> bytes:
    return bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in sizes) + bytes(9)


def npz_of(kind: str, *shape: int) -> bytes:
    """An array that promises all this, and holds ten million zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": kind, "fortran_order": False, "shape": shape})
        member.write(bytes(10_000_000))
    return stream.getvalue()


def zip_of(name: str, content: bytes) -> bytes:
    """A sound archive with one more member."""
    stream = io.BytesIO(zipped(zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def zipped_images(count: int, side: int) -> bytes:
    """Black images, which take a thousandth of a byte for each pixel."""
    image, stream = encoded(np.zeros((side, side), np.uint8)), io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count):
            archive.writestr(f"{number}.png", image)
    return stream.getvalue()


def nested(depth: int) -> bytes:
    return pdf(b"0 0 9 9 re f", *[b"/F Do " * 10] * depth)


HARMFUL: dict[str, tuple[Callable[[], bytes], Callable[[Path], object]]] = {
    "tiff-of-a-million-strips": (lambda: many_strips(1_000_000), read_image),
    "tiff-of-a-huge-tile": (huge_tile, read_image),
    "tiff-of-1001-pages": (lambda: many_pages(1001), read_film),
    "tiff-of-tags-that-share-data": (lambda: many_tags(3000), read_image),
    "pgm-of-60000-rows": (lambda: b"P5 60000 60000 255\n0", read_image),
    "gif-in-motion": (lambda: pages("GIF"), read_image),
    "idx-without-images": (lambda: idx_of(0, 2**32 - 1, 2**32 - 1), read_set),
    "idx-without-rows": (lambda: idx_of(2**32 - 1, 0, 2**32 - 1), read_set),
    "idx-of-all": (lambda: gzip.compress(idx_of(*[2**32 - 1] * 3)), read_set),
    "npz-of-bytes": (lambda: npz_of("|u1", 70, 6000, 6000), read_set),
    "npz-without-images": (lambda: npz_of("<f8", 0, 2**40, 2**40), read_set),
    "npz-of-all": (lambda: npz_of("<f8", 2**31, 2**31, 4), read_set),
    "zip-that-leads-out": (lambda: zip_of("../a.png", encoded(GREY)), read_set),
    "zip-of-large-images": (lambda: zipped_images(60, 2000), read_set),
    "zip-of-a-large-member": (lambda: zip_of("a.png", bytes(100_000_000)), read_set),
    "safetensors-of-all": (lambda: struct.pack("<Q", 2**63) + prior()[0][8:], read_weights),
    "toml-of-any-depth": (lambda: GOOD.encode() + b"x = " + b"[" * 100_000, read_recipe),
    "toml-of-a-long-number": (lambda: GOOD.replace("5", "9" * 5000).encode(), read_recipe),
    "json-of-a-number": (lambda: checkpoint_of("9"), read_checkpoint),
    "json-of-any-depth": (lambda: checkpoint_of("[" * 100_000), read_checkpoint),
}
# What is written is a file of this name, if the reader asks for one.
NAMES: dict[object, str] = {read_weights: zoo.WEIGHTS, read_checkpoint: checkpoint.NAME}


def test_a_page_that_is_never_drawn_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdfium2")
    monkeypatch.setattr("restore.images.pdf.SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(RestoreError) as caught:
        read_picture(nested(12), name="x")
    assert caught.value.subject == "x"
    assert time.monotonic() - began < HANG


@pytest.mark.parametrize("name", HARMFUL)
def test_files_made_to_harm(name: str, tmp_path: Path) -> None:
    make, read = HARMFUL[name]
    place = tmp_path / NAMES.get(read, "x")
    place.write_bytes(make())
    left = sorted(tmp_path.iterdir())
    with bounded_memory(name):
        assert refused(read, place, name)
    assert sorted(path for path in tmp_path.iterdir() if path.suffix != ".safetensors" or path in left) == left
