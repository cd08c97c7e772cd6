"""Files of another size than the prior's, and scans, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image
from priors import saved_prior


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


# --- scans ---

SHAPE = (64, 80)
INK = np.zeros(SHAPE, bool)
INK[8:56, 10:70:10] = INK[8:56, 11:71:10] = True


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    light = np.linspace(1.0, 0.5, SHAPE[1])
    grey = light * np.where(INK, 0.2, 0.9) + 0.04 * np.random.default_rng(0).standard_normal(SHAPE)
    path = tmp_path / "scan.jpg"
    Image.fromarray(np.rint(255 * grey.clip(0, 1)).astype(np.uint8)).save(path, quality=95)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return saved_prior(tmp_path, (8, 8))


@pytest.mark.parametrize("words", [[], ["--p", "scan"]], ids=["no options", "--p scan"])
def test_a_scan_becomes_black_and_white(
    run: Run, scan: Path, small: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", scan, "--model", small, "--force", "--json", *words) == 0
    told = capsys.readouterr()
    assert ("read as a page" in told.err) == bool(words)
    found = np.asarray(Image.open(scan.with_name("scan.jpg.restored.png")))
    assert set(np.unique(found)) <= {0, 255} and found.shape == SHAPE
    assert (json.loads(told.out)["p"] == "scan") == bool(words)


def test_a_blank_page_stays_as_it_is(run: Run, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = tmp_path / "blank.png"
    Image.fromarray(np.full(SHAPE, 200, np.uint8)).save(blank)
    assert run("denoise", blank, "--model", small, "--p", "scan", "--json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "independent pixels"
    assert (np.asarray(Image.open(blank.with_name("blank.restored.png"))) == 200).all()
