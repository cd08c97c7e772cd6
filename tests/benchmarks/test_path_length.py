"""The count of functions that a command goes through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.package.path_length import EXAMPLE, traced


def test_a_command_is_traced_from_its_entrance_to_its_file(tmp_path: Path) -> None:
    source = tmp_path / "digit.png"
    Image.open(EXAMPLE[1]).save(source)
    trace = traced(["denoise", str(source), *EXAMPLE[2:]])
    names = {code.co_name for code in trace.codes}
    assert {"main", "denoise", "write_atomically"} <= names
    assert 10 < len(set(trace.files)) <= len(trace.codes) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


@pytest.mark.thorough
def test_training_is_traced_and_leaves_no_prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for number in range(40):
        picture = np.zeros((8, 8), np.uint8)
        picture[number % 4 : number % 4 + 3, 2:6] = 255
        Image.fromarray(picture).save(tmp_path / "images" / f"{number}.png")
    trace = traced(["train", "images", "--method", "tap", "--hidden", "4", "--minutes", "0.05"])
    assert {"main", "train", "keep"} <= {code.co_name for code in trace.codes}
    assert [path.name for path in tmp_path.iterdir()] == ["images"]
