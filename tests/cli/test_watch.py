"""`--watch`: each image that comes into a folder is restored once, when it is complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from batches import stamps, strokes
from commands import QUICK, Run

from restore.cli import watch

Steps = list[Callable[[], object]]

HOW = ("--model", QUICK, "--p", "0.1")


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """What happens between one look and the next, in order; after the last, Ctrl-C."""
    steps: Steps = []

    def sleep(seconds: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    monkeypatch.setattr(watch.time, "sleep", sleep)
    return steps


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "out").mkdir()
    return strokes(tmp_path / "in", 3), tmp_path / "out"


def nothing() -> None:
    pass


def test_what_is_there_and_what_comes_is_restored_once(run: Run, folders: tuple[Path, Path], between: Steps) -> None:
    source, out = folders
    content = (source / "0002.png").read_bytes()
    (source / "0002.png").unlink()
    (out / "0001.restored.png").write_bytes(b"a result")
    seen: list[set[str]] = []

    def look() -> None:
        seen.append({name.partition(".")[0] for name in stamps(out)})

    def write(name: str, content: bytes) -> Callable[[], object]:
        return lambda: (look(), (source / name).write_bytes(content))

    between += [nothing, write("new.png", content[:40]), write("new.png", content), look, look]
    between += [lambda: (out / "0000.restored.png").unlink(), nothing, look]
    assert run("denoise", source, *HOW, "-o", out, "--watch") == 0
    assert seen == [{"0000", "0001"}, {"0000", "0001"}, {"0000", "0001"}, {"0000", "0001", "new"}, {"0001", "new"}]
    assert (out / "0001.restored.png").read_bytes() == b"a result"


def test_a_file_that_fails_is_told_once_and_tried_again_if_it_changes(
    run: Run, folders: tuple[Path, Path], between: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = folders
    content = (source / "0001.png").read_bytes()
    (source / "0001.png").write_bytes(b"")
    told: list[int] = []

    def count() -> None:
        told.append(capsys.readouterr().err.count("0001.png: "))

    mended = source / "0001.png"
    between += [nothing, count, count, lambda: mended.write_bytes(content), nothing, count]
    assert run("denoise", source, *HOW, "-o", out, "--watch", "--quiet") == 0
    assert told == [1, 0, 0]
    assert set(stamps(out)) == {f"000{index}.restored.png" for index in range(3)}


def test_holes_are_filled_by_masks_of_the_same_names(run: Run, folders: tuple[Path, Path], between: Steps) -> None:
    source, out = folders
    masks = strokes(source.parent / "masks", 3)
    between += [nothing]
    assert run("complete", source, "--mask", masks, "--model", QUICK, "-o", out, "--watch", "--quiet") == 0
    assert len(stamps(out)) == 3


def test_a_folder_that_goes_away_ends_it(run: Run, folders: tuple[Path, Path], between: Steps) -> None:
    source, out = folders
    between += [nothing, lambda: source.rename(source.parent / "elsewhere")]
    assert run("denoise", source, *HOW, "-o", out, "--watch", "--quiet") == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("{in}/0000.png", "-o", "{out}"), 2),
        (("-", "-o", "{out}"), 2),
        (("{in}", "-o", "{out}/one.png"), 2),
        (("{in}", "-o", "{out}", "--overwrite"), 2),
        (("{in}", "-o", "{out}", "--uncertainty", "{in}"), 2),
        (("{in}", "-o", "{out}", "--model", "no-such-prior"), 4),
        (("{in}", "-o", "{out}/none/deeper/"), 5),
    ],
    ids=str,
)
def test_what_cannot_go_on_is_refused(
    run: Run, folders: tuple[Path, Path], between: Steps, words: tuple[str, ...], code: int
) -> None:
    between += [nothing]
    filled = [word.replace("{in}", str(folders[0])).replace("{out}", str(folders[1])) for word in words]
    assert run("denoise", *HOW, *filled, "--watch") == code
    assert not stamps(folders[1])
