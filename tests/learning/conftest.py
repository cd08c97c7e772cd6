"""A folder to train in."""

from __future__ import annotations

from pathlib import Path

import pytest
from lessons import bars
from PIL import Image


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with images, that is also where priors are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # Graphs have tests of their own.
    monkeypatch.setattr("restore.export.packing.beside_weights", lambda folder: b"")
    (tmp_path / "images").mkdir()
    for number, image in enumerate(bars()):
        Image.fromarray(image).save(tmp_path / "images" / f"{number:03d}.png")
    return tmp_path
