"""Files of another size than the prior's on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image


def saved(path: Path, shape: tuple[int, int]) -> np.ndarray:
    pixels = np.where(np.random.default_rng(0).random(shape) < 0.3, 255, 0).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 5), (10, 12), (25, 31)], ids=str)
def test_files_of_any_size_come_back_at_theirs(
    shape: tuple[int, int], model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path / "it.png", shape)
    words = ("--model", model, "--p", 0.1, "--force", "--json", "--soft", "--uncertainty", tmp_path / "u.png")
    assert run("denoise", tmp_path / "it.png", *words) == 0
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert record["status"] == "converged" and record["p"] == 0.1
    tiled = record["outcome"] == "restored" and (shape[0] > 10 or shape[1] > 12)
    assert any("12x10" in note for note in record["notes"]) == tiled
    for name in ("it.restored.png", "u.png"):
        assert np.asarray(Image.open(tmp_path / name)).shape == shape


@pytest.mark.thorough
def test_a_large_file_shows_how_far_it_has_come(
    model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restore.inference.tiles.blocks.TILES", 3)
    monkeypatch.setattr("restore.console.PLAIN_SECONDS", 0.0)
    saved(tmp_path / "it.png", (60, 60))
    assert run("denoise", tmp_path / "it.png", "--model", model, "--p", 0.1, "--force") == 0
    assert "restored 100%" in capsys.readouterr().err
