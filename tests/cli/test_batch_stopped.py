"""A batch that is stopped at any moment and started again: each image is restored once, and no half file stays."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from batches import again, stamps, strokes
from commands import QUICK, Run, command
from PIL import Image
from restore.cli.batch import stages
from restore.cli.batch.manifest import NAME
from waiting import HANG, wait_for

from restore import files


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.mark.thorough
@pytest.mark.parametrize("renamed", [False, True], ids=["row57-before-the-rename", "row57-after-the-rename"])
@pytest.mark.parametrize("at", range(1, 11))
def test_killed_at_any_file_and_started_again_each_is_written_once(
    at: int, renamed: bool, run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: Counter[str] = Counter()
    begun = 0

    def dying(path: str, content: bytes) -> None:
        nonlocal begun
        begun += 1
        if begun == at and not renamed:
            raise Killed
        files.write_atomically(path, content)
        written[Path(path).name] += 1
        if begun == at:
            raise Killed

    monkeypatch.setattr(stages, "write_atomically", dying)
    maps = ("--uncertainty", f"{tmp_path}/maps/", "--workers", 1)
    with pytest.raises(Killed):
        run(*words, *maps)
    assert run(*words, *maps) == 0
    outputs = {f"{index:04}.restored.png": 1 for index in range(5)}
    # Maps too, which are complete before the images that they belong to.
    assert written == outputs | {f"{index:04}.uncertainty.png": 1 for index in range(5)}
    assert again(run, words, tmp_path / "out", *maps) == (0, set())


def test_row57_killed_while_it_takes_notes_a_run_goes_on(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 0
    manifest = tmp_path / "out" / NAME
    # Half of the last line reached the disk, and its output did not.
    manifest.write_bytes(manifest.read_bytes()[:-40])
    (tmp_path / "out" / "0004.restored.png").unlink()
    capsys.readouterr()
    assert again(run, words, tmp_path / "out") == (0, {"0004.restored.png"})
    assert "4 of 5 images have their results already" in capsys.readouterr().err
    assert again(run, words, tmp_path / "out") == (0, set())


# The command, which writes two results and holds the others back until there is a file.
HELD = """
import sys, time
from itertools import count
from pathlib import Path
from restore.cli import main
from restore.cli.batch import stages
number, write, go = count(), stages.write_atomically, Path(sys.argv.pop(1))
def held(*arguments):
    late = next(number) >= 2
    while late and not go.exists():
        time.sleep(0.02)
    write(*arguments)
stages.write_atomically = held
main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["row57-int", "row57-term", "row57-kill"],
)
def test_a_batch_stopped_by_a_signal_leaves_whole_files_and_goes_on(number: int, code: int, tmp_path: Path) -> None:
    count, go = 16, tmp_path / "go"
    source, target = strokes(tmp_path / "in", count), tmp_path / "out"
    words = ("denoise", source, "--model", QUICK, "--p", 0.3, "--force", "-o", f"{target}/", "--quiet")
    process = subprocess.Popen([sys.executable, "-c", HELD, str(go), *map(str, words)], stderr=subprocess.PIPE)
    wait_for(lambda: any(target.glob("*.restored.png")), process)
    process.send_signal(number)
    go.touch()
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == code and b"Traceback" not in said
    done = stamps(target)
    assert 0 < len(done) < count
    for name in done:
        assert Image.open(target / name).size == (28, 28)
    subprocess.run(command(*words), check=True)
    after = stamps(target)
    assert len(after) == count and done.items() <= after.items()


def test_what_a_killed_process_left_is_swept_away(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    left, other, written, begun, old = (
        out / name
        for name in (f".restore-{'a' * 16}", ".restore-mine", *(f".restore-{letter * 16}" for letter in "bcd"))
    )
    link = out / f".restore-{'e' * 16}"
    link.symlink_to(tmp_path / "in" / "0000.png")
    for path in (left, other, written):
        path.write_bytes(b"half")
    # Empty: a process may be about to lock it, unless that was long ago.
    for path in (begun, old):
        path.touch()
    os.utime(old, (1, 1))
    with written.open("rb") as stream:
        # As `write_atomically` does as long as it lives.
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert run(*words) == 0
        assert {path for path in (left, other, written, begun, old, link) if os.path.lexists(path)} == {
            *(other, written, begun, link)
        }
    # With nothing left to do, too.
    assert again(run, words, out) == (0, set())
    assert not written.exists()


def test_no_file_is_swept_away_under_the_hands_of_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def sweeping(descriptor: int) -> None:
        real(descriptor)
        files.remove_abandoned(tmp_path)

    monkeypatch.setattr(os, "fsync", sweeping)
    files.write_atomically(tmp_path / "whole", b"content")
    assert (tmp_path / "whole").read_bytes() == b"content"
