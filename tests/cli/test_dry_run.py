"""`--dry-run` says what would be done, and does none of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, Run, strokes
from PIL import Image

NOISE = 255 * np.random.default_rng(0).integers(0, 2, (28, 28), dtype=np.uint8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two images that are restored, and one that is refused."""
    folder = strokes(tmp_path / "in", 2)
    Image.fromarray(NOISE).save(folder / "a noise.png")
    return folder


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_it_says_of_each_image_what_would_be_done_and_writes_nothing(
    jobs: int, run: Run, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = ("--uncertainty", f"{tmp_path}/maps/")
    words = ("denoise", source, "--model", QUICK, "--strict", "-o", f"{tmp_path}/out/", *beside)
    assert run(*words, "--dry-run", "--jobs", jobs) == 6
    out, err = capsys.readouterr()
    assert list(tmp_path.iterdir()) == [source] and len(list(source.iterdir())) == 3
    for number in range(2):
        (line,) = [line for line in out.splitlines() if line.endswith(f"out/000{number}.restored.png")]
        assert QUICK in line and "(found)" in line and "would" in line
    assert "a noise.png" in err and "a noise.png" not in out
    assert run(*words, "--dry-run", "--quiet") == 6 and capsys.readouterr().out == out


def test_its_facts_are_those_of_the_run(
    run: Run, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("denoise", source, "--model", QUICK, "--strict", "--json", "-o", f"{tmp_path}/out/")
    assert run(*words, "--dry-run") == 6
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not (tmp_path / "out").exists()
    assert run(*words) == 6
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == facts
    assert ["error" in fact for fact in facts] == [False, False, True]
    assert all(Path(fact["output"]).exists() for fact in facts if "output" in fact)


def test_what_would_stop_the_run_stops_it_too(run: Run, source: Path, tmp_path: Path) -> None:
    (source / "0000.restored.png").write_bytes(b"mine")
    words = ("denoise", source / "0000.png", "--model", QUICK, "--dry-run")
    assert run(*words) == 5
    assert run(*words, "-o", f"{tmp_path}/no/such/folder/") == 5
    assert run(*words, "--overwrite") == 0 and (source / "0000.restored.png").read_bytes() == b"mine"


def test_nothing_goes_to_stdout_but_what_would_be_done(
    run: Run, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", source / "0000.png", "--model", QUICK, "--dry-run", "-o", "-") == 0
    assert "PNG" not in capsys.readouterr().out
