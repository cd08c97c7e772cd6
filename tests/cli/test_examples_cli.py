"""`restore examples` writes every picture that the documentation names, and replaces nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_every_picture_in_a_command_of_the_documentation_is_copied(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("examples", tmp_path / "assets") == 0
    copied = {Path(line).name for line in capsys.readouterr().out.splitlines()}
    assert copied == {path.name for path in (tmp_path / "assets").iterdir()}
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?<![(/])assets/([\w-]+\.png)", shown))
    assert len(named) > 8 and named <= copied
    for name in copied:
        assert (tmp_path / "assets" / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_a_file_that_is_there_stays(run: Run, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("mine")
    assert run("examples", tmp_path) == 0
    assert (tmp_path / "page.png").read_text() == "mine"
    assert run("examples", tmp_path / "page.png") == 5
