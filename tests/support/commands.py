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
