"""Pictures in folders, for tests of gathering them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

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


def mixed(folder: Path) -> dict[str, np.ndarray]:
    """Thirty images of 12x10 pixels, ten of 20x14."""
    large = np.random.default_rng(1).integers(0, 256, (10, 20, 14), dtype=np.uint8)
    return numbered(GREY[:30]) | {f"large/{number}.png": pixels for number, pixels in enumerate(large)}
