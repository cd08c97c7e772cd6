"""The count of functions that a command goes through."""

from __future__ import annotations

from pathlib import Path

from path_length import EXAMPLE, traced
from PIL import Image


def test_a_command_is_traced_from_its_entrance_to_its_file(tmp_path: Path) -> None:
    source = tmp_path / "digit.png"
    Image.open(EXAMPLE[1]).save(source)
    trace = traced(["denoise", str(source), *EXAMPLE[2:]])
    names = {code.co_name for code in trace.codes}
    assert {"main", "denoise", "write_atomically"} <= names
    assert 10 < len(set(trace.files)) <= len(trace.codes) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
