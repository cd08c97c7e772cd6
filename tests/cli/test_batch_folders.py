"""Where a batch writes, and what it does when a folder, a disk, a reader or a device fails it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from batches import again, stamps, strokes
from commands import QUICK, Run, command
from restore.cli.batch.manifest import NAME, Manifest


def test_row51_a_folder_of_outputs_inside_that_of_inputs_is_not_read(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    for out in (tmp_path / "in" / "deeper", tmp_path / "in"):
        inside = (*words[:-1], f"{out}/")
        assert again(run, inside, out)[1] >= {f"{index:04}.restored.png" for index in range(5)}
        assert again(run, inside, out) == (0, set())
        assert len(list(out.glob("*.restored.png"))) == 5


def test_single_files_have_no_manifest(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    one = ("denoise", tmp_path / "in" / "0000.png", *words[2:-1], tmp_path / "one.png")
    assert (run(*one), run(*one)) == (0, 5)
    assert run("denoise", *words[1:-2]) == 0
    assert not list(tmp_path.rglob(NAME))


def test_row61_two_runs_do_not_write_into_one_folder(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with Manifest.of(out, {}, None, False).writing():
        assert again(run, words, out) == (5, set())
    assert run(*words) == 0


def test_row53_a_full_disk_stops_a_batch_with_nothing_half_done(
    run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        assert run(*words) == 5
    assert not list((tmp_path / "out").glob("*.png"))
    assert run(*words) == 0


def test_row52_a_manifest_that_cannot_be_read_is_an_output_fault(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "out" / NAME).mkdir(parents=True)
    assert again(run, words, tmp_path / "out") == (5, set())


def test_row54_a_reader_who_leaves_ends_a_batch_quietly_and_it_goes_on(run: Run, tmp_path: Path) -> None:
    source = strokes(tmp_path / "in", 5)
    words = ("denoise", source, "--model", QUICK, "--p", 0.3, "--force", "-o", f"{tmp_path}/out/")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(*words, "--json", "--quiet"), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    written = stamps(tmp_path / "out")
    assert again(run, words, tmp_path / "out")[0] == 0
    assert len(stamps(tmp_path / "out")) == 5 and written.items() <= stamps(tmp_path / "out").items()


def test_row55_an_image_does_not_go_to_a_terminal(
    run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("denoise", tmp_path / "in" / "0000.png", *words[2:-1], "-") == 2


def test_row63_a_device_too_small_for_one_image_stops_a_batch_which_goes_on_elsewhere(
    run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def full(*arguments: object) -> None:
        raise torch.cuda.OutOfMemoryError("made up")

    with monkeypatch.context() as patched:
        patched.setattr("restore.inference.torch_engine.solve", full)
        assert again(run, words, tmp_path / "out") == (3, set())
    assert run(*words) == 0


@pytest.mark.parametrize(
    "line", ["[]", "null", "{", '{"files": {"0000.restored.png": 3}}', '{"sources": {}, "files": 1}']
)
def test_lines_of_a_manifest_that_mean_nothing_are_passed_over(
    line: str, run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    assert run(*words) == 0
    with (tmp_path / "out" / NAME).open("a") as stream:
        stream.write(line)
    assert again(run, words, tmp_path / "out") == (0, set())
