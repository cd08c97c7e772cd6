"""Small files with large contents: refused before memory is taken for what they promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bad_images import GREY, encoded
from data_sets import zipped
from processes import attacked, linux

# --- sets of images ---


def blank(side: int) -> bytes:
    """A black PNG: a thousandth of a byte for each pixel."""
    return encoded(np.zeros((side, side), np.uint8))


@pytest.mark.thorough
@linux
def test_an_archive_of_large_images_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    few = {f"{number}.png": encoded(GREY // (number + 1)) for number in range(4)}
    content = blank(2000)
    harmless = zipped(tmp_path / "a.zip", few)
    bomb = zipped(tmp_path / "b.zip", {f"{number}.png": content for number in range(60)})
    assert len(bomb.read_bytes()) < 22_000
    code = "gather(path, limits=Limits(max_pixels=5_000_000))"
    said, grown = attacked(code, harmless, bomb, "from restore.data import Limits, gather")
    assert said.startswith(f"InputError {bomb}: ") and "max_pixels" in said
    # The budget in bytes, and what decoding one image takes; all of them are 240 million, and were held twice.
    assert grown < 100_000_000 + 50_000_000


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
