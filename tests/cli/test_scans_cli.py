"""`restore denoise` on scans: no options, `--p scan`, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image
from priors import saved_prior

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
def model(tmp_path: Path) -> Path:
    return saved_prior(tmp_path, (8, 8))


@pytest.mark.parametrize("words", [[], ["--p", "scan"]], ids=["no options", "--p scan"])
def test_a_scan_becomes_black_and_white(
    run: Run, scan: Path, model: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", scan, "--model", model, "--force", "--json", *words) == 0
    told = capsys.readouterr()
    assert ("read as a scan" in told.err) == bool(words)
    found = np.asarray(Image.open(scan.with_name("scan.jpg.restored.png")))
    assert set(np.unique(found)) <= {0, 255} and found.shape == SHAPE
    assert (json.loads(told.out)["p"] == "scan") == bool(words)


def test_a_blank_page_is_refused(run: Run, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = tmp_path / "blank.png"
    Image.fromarray(np.full(SHAPE, 200, np.uint8)).save(blank)
    assert run("denoise", blank, "--model", model, "--p", "scan") == 4
    said = capsys.readouterr().err
    assert "blank.png: " in said and said.count("\n") == 1
    assert not blank.with_name("blank.restored.png").exists()
