"""Images as idx files, for tests."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)


def idx_bytes(images: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{images.ndim}I", 0, 0, 8, images.ndim, *images.shape) + images.tobytes()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
