"""`restore evaluate`: options that exclude each other, and images that do not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run
from priors import saved_prior

SHAPE = (4, 5)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_prior(tmp_path / "tiny", SHAPE)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--data", "data.npy"),
        ("--task", "flip:0.1"),
        ("--data", "data.npy", "--task", "flip:0.1", "--card"),
        ("--data", "data.npy", "--task", "flip:0.1", "--n", 0),
        ("--data", "data.npy", "--task", "flip:2"),
        *(("--card", *words) for words in (("--soft",), ("--threshold", 9), ("--split", "train"), ("--solver", "tap"))),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_usage(
    options: tuple[object, ...],
    run: Run,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", np.zeros((3, *SHAPE)))
    assert run("evaluate", model, *options) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and told.out == ""


@pytest.mark.parametrize("images", [np.zeros((0, *SHAPE)), np.zeros((3, 0, 5))], ids=["none", "empty"])
def test_no_images(
    images: np.ndarray, run: Run, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "data.npy", images)
    assert run("evaluate", model, "--data", tmp_path / "data.npy", "--task", "flip:0.1") in (3, 7)
    assert capsys.readouterr().err.count("\n") == 1
