"""In Python as by the command pictures are converted part by part, and restored a few at a time."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run
from enumerated import ANY_SIZE, FieldEngine, small_machine
from PIL import Image, ImageSequence

import restore
from restore.api.given import restored
from restore.errors import NotRestored
from restore.status import Status


def pages(count: int, folder: Path, side: int = 400) -> Path:
    """A TIFF of pages with a disc each, 160 kB a page."""
    rows, columns = np.mgrid[:side, :side]
    sheets = [
        Image.fromarray(np.uint8(255 * (np.hypot(rows - side / 2, columns - side / 2) < side / 3 + page)))
        for page in range(count)
    ]
    sheets[0].save(path := folder / f"{count}.tif", save_all=True, append_images=sheets[1:])
    return path


def peak(work: Callable[[], object]) -> int:
    """The most bytes that were held at a time, beyond those before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def field() -> FieldEngine:
    forgets: Any = deque(maxlen=0)
    return replace(FieldEngine.of(small_machine(scale=0.0), (3, 4), white=0.5, **ANY_SIZE), calls=forgets)


@pytest.mark.parametrize("kind", ["file", "arrays"])
def test_further_pages_take_the_memory_of_their_levels_and_results_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restore.api.given.PORTION_PIXELS", 1)

    def used(count: int) -> int:
        path, given = pages(count, tmp_path), None
        if kind == "arrays":
            with Image.open(path) as file:
                given = np.stack([np.asarray(page.convert("L")) for page in ImageSequence.Iterator(file)])
        return peak(lambda: restored(path if given is None else given, None, field(), 0.05, False, {}))

    few, many = used(3), used(9)
    # A byte each for levels and results; of the posterior that is at work 8 bytes a pixel and more.
    assert many - few < 6 * 400 * 400 * 4
    assert few > 400 * 400 * 8


def test_a_file_is_seen_as_the_command_sees_it(tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A map of four classes, whose colours have no order."""
    classes = np.random.default_rng(0).integers(0, 4, (8, 8)).repeat(30, 0).repeat(30, 1)
    colours = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [240, 240, 30]], np.uint8)
    path = tmp_path / "map.png"
    Image.fromarray(colours[classes]).save(path)
    with pytest.raises(NotRestored) as caught:
        restore.denoise(path, strict=True)
    assert run("denoise", path, "--strict", "-o", tmp_path / "clean.png") == NotRestored.exit_code
    assert Status.CLASSES.sentence in str(caught.value) and Status.CLASSES.sentence in capsys.readouterr().err
