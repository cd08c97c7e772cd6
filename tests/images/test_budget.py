"""Small files with large contents: refused before memory is taken for what they promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

# --- sets of images ---


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_the_budget_is_an_option_of_every_command_that_reads_a_set(
    command: str, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (50, 28, 28), dtype=np.uint8))
    words = {
        "train": ["train", path, "--name", "x", "-o", tmp_path / "x", "--run", tmp_path / "run"],
        "evaluate": ["evaluate", "tap-mnist-25", "--data", path, "--task", "flip:0.1"],
    }[command]
    assert run(*words, "--max-pixels", 50 * 28 * 28 // 20 - 1) == 3
    said = capsys.readouterr().err
    assert str(path) in said and "--max-pixels" in said
    assert run(*words, "--max-pixels", 0) == 2
