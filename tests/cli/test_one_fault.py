"""What nobody foresees at one image is that image's failure: it is named, and all others are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import QUICK, Run, strokes

import restore
from restore.api import given
from restore.cli import damaging
from restore.cli.batch import work
from restore.errors import PartialFailure, RestoreWarning, Unforeseen
from restore.status import Status

COUNT, BAD = 4, "0002.png"
FAULTS = [ZeroDivisionError("of a library"), MemoryError(), RecursionError("too deep"), AttributeError("no such thing")]


def breaking(function: Any, bad: Any, fault: Exception) -> Any:
    """The same function, which raises a fault where `bad` says so of what it is given."""

    def broken(*arguments: Any, **options: Any) -> Any:
        if bad(arguments, options):
            raise fault
        return function(*arguments, **options)

    return broken


def named(arguments: Any, options: Any) -> bool:
    return BAD in str(options.get("name", "")) or any(BAD in str(one)[:500] for one in arguments)


def holds_it(arguments: Any, options: Any) -> bool:
    """True for pictures of which one is that of the bad file: its stroke begins at row 6."""
    return any(
        np.asarray(picture.pixels[:, :])[6:10, 10].all() and not picture.pixels[5:6, 10] for picture in arguments[0]
    )


STAGES = {
    "opened": ("read_content", named),
    "read": ("read_picture", named),
    "restored": ("restore", holds_it),
    "reported": ("record_of", lambda arguments, options: BAD in arguments[0].name),
    "joined": ("_content", lambda arguments, options: BAD in arguments[0].name),
    "written": ("write_atomically", lambda arguments, options: "0002" in arguments[0]),
}


def words(folder: Path, *more: object) -> tuple[object, ...]:
    source = strokes(folder / "in", COUNT)
    return ("denoise", source, "--model", QUICK, "--p", 0.1, "--force", "-o", f"{folder}/out/", *more)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_of_one_image_is_its_own(
    stage: str,
    fault: Exception,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, bad = STAGES[stage]
    monkeypatch.setattr(work, name, breaking(getattr(work, name), bad, fault))
    assert run(*words(tmp_path)) == PartialFailure.exit_code
    said = capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{number:04}.restored.png" for number in range(COUNT) if f"{number:04}.png" != BAD
    ]
    lines = [line for line in said.splitlines() if BAD in line]
    assert len(lines) == 1 and type(fault).__name__ in lines[0] and "Traceback" not in said
    assert run(*words(tmp_path, "--overwrite", "--debug")) == PartialFailure.exit_code
    said = capsys.readouterr().err
    assert "Traceback" in said and "in broken" in said


def test_of_a_single_image_it_ends_the_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(work, "read_picture", breaking(work.read_picture, named, ZeroDivisionError()))
    strokes(tmp_path, COUNT)
    assert run("denoise", tmp_path / BAD, "--model", QUICK, "--p", 0.1) == Unforeseen.exit_code
    assert f"{BAD}: internal fault, ZeroDivisionError" in capsys.readouterr().err


def test_corrupt_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = strokes(tmp_path / "in", COUNT)
    monkeypatch.setattr(damaging, "read_picture", breaking(damaging.read_picture, named, ZeroDivisionError()))
    assert run("corrupt", source, "--task", "flip:0.1", "-o", f"{tmp_path}/out/") == PartialFailure.exit_code
    assert len([*(tmp_path / "out").iterdir()]) == COUNT - 1


def test_in_python_one_image_of_several_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = np.zeros((3, 28, 28), bool)
    for number in range(3):
        pictures[number, 4 + 2 * number : 9 + 2 * number, 8:20] = True
    pictures[:, 20, 4] = True  # a speck
    monkeypatch.setattr(given, "restore", breaking(given.restore, holds_it, ZeroDivisionError("by chance")))
    with pytest.warns(RestoreWarning, match="1 of 3 images"):
        cleaned, answer = restore.denoise(pictures, QUICK, p=0.1, force=True, return_solution=True)
    assert [status is Status.FAILED for status in answer.status] == [False, True, False]
    assert (cleaned[1] == pictures[1]).all() and not cleaned[[0, 2], 20, 4].any()
    with pytest.raises(ZeroDivisionError):
        restore.denoise(pictures[1], QUICK, p=0.1)
