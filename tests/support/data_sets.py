"""Data sets at hand, and small ones made on the spot."""

from __future__ import annotations

import os
import struct
import zipfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from restore.data import Dataset, Split, load

ROOT = Path(os.environ.get("RESTORE_DATA", ""))


def needs(name: str, *files: str) -> pytest.MarkDecorator:
    """Skip a test where a data set is not at hand; it is never downloaded."""
    return pytest.mark.skipif(
        not all((ROOT / name / file).is_file() for file in files),
        reason=f"needs {name}: set RESTORE_DATA to a folder that holds {name}/ with {', '.join(files)}",
    )


needs_mnist = needs("mnist", *(f"{part}-images-idx3-ubyte.gz" for part in ("train", "t10k")))

NAME = "caltech101-silhouettes"
FILE = "caltech101_silhouettes_28.mat"
SPELLINGS = [NAME, "caltech101_silhouettes"]
COPIES = [path for path in (ROOT / folder / FILE for folder in SPELLINGS) if path.is_file()]

needs_silhouettes = pytest.mark.skipif(
    not COPIES, reason=f"needs the silhouettes: set RESTORE_DATA to a folder that holds {NAME}/{FILE}"
)


@cache
def at_hand(name: str, split: Split) -> Dataset:
    return load(name, split=split, root=ROOT)


mnist, cbcl, omniglot = (partial(at_hand, name) for name in ("mnist", "cbcl", "omniglot"))
silhouettes = partial(at_hand, NAME)


def overlap(first: Dataset, second: Dataset) -> int:
    known = {(image.shape, image.tobytes()) for image in first.images}
    return sum((image.shape, image.tobytes()) in known for image in second.images)


# --- files of images ---


IMAGES = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)


def idx_bytes(images: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{images.ndim}I", 0, 0, 8, images.ndim, *images.shape) + images.tobytes()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# --- pictures in folders ---


GREY = np.random.default_rng(0).integers(0, 256, (40, 12, 10), dtype=np.uint8)


def save(folder: Path, images: dict[str, np.ndarray]) -> Path:
    for name, pixels in images.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, "PNG")
    return folder


def numbered(images: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{number:04}.png": pixels for number, pixels in enumerate(images)}


def as_set(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}
