"""Running the command: what goes in, and what comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import bad_images
import numpy as np
import pytest
from PIL import Image

Run = Callable[..., int]

# Of 28 x 28 pixels, and with a graph: a process that restores with it need not load torch, which takes seconds.
QUICK = "tap-mnist-25"


def image(folder: Path, name: str = "image.png") -> Path:
    path = folder / name
    Image.fromarray(bad_images.GREY).save(path, "PNG")
    return path


def levels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def fault(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr that tells of a fault."""
    said = capsys.readouterr().err
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.startswith("restore: ")]
    assert len(lines) == 1, said
    return lines[0]


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from restore.cli import main; main()", *map(str, words)]


def images(folder: Path, count: int, shape: tuple[int, int] = bad_images.SHAPE) -> Path:
    """A folder of random black and white images, 0000.png and so on, which no prior explains."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for index in range(count):
        Image.fromarray(255 * rng.integers(0, 2, shape, dtype=np.uint8)).save(folder / f"{index:04}.png")
    return folder


def strokes(folder: Path, count: int) -> Path:
    """A folder of images of 28 x 28 pixels that `QUICK` restores: a stroke and four flips each, 0000.png and so on."""
    folder.mkdir(exist_ok=True)
    for index in range(count):
        picture = np.zeros((28, 28), np.uint8)
        picture[4 + index : 8 + index, 8:20] = picture[24, 2 + index] = 255
        picture[[20, 26, 1], [10, 22, 25]] = 255
        Image.fromarray(picture).save(folder / f"{index:04}.png")
    return folder


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Which files a folder's images are: another one, or the same one written again, has another stamp."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.png"))}
