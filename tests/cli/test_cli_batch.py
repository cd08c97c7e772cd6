"""Many images into a folder: stopped anywhere and started again, each is restored once, in bounded memory."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock

import bad_images
import numpy as np
import pytest
from PIL import Image
from priors import saved_prior
from waiting import HANG, wait_for

from restore import files
from restore.cli.batch import stages
from restore.cli.batch.manifest import NAME, Manifest
from restore.cli.batch.pool import workers
from restore.cli.batch.stages import CHUNK

Run = Callable[..., int]

# Of 28 x 28 pixels, and with a graph: a process that restores with it need not load torch, which takes seconds.
QUICK = "tap-mnist-25"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_prior(tmp_path_factory.mktemp("model"), bad_images.SHAPE))


def images(folder: Path, count: int, shape: tuple[int, int] = bad_images.SHAPE) -> Path:
    """A folder of random black and white images, 0000.png and so on, which no prior explains."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for index in range(count):
        Image.fromarray(255 * rng.integers(0, 2, shape, dtype=np.uint8)).save(folder / f"{index:04}.png")
    return folder


def strokes(folder: Path, count: int) -> Path:
    """A folder of images of 28 x 28 pixels that `QUICK` makes short work of: a stroke each, 0000.png and so on."""
    folder.mkdir(exist_ok=True)
    for index in range(count):
        picture = np.zeros((28, 28), np.uint8)
        picture[4 + index : 8 + index, 8:20] = 255
        Image.fromarray(picture).save(folder / f"{index:04}.png")
    return folder


@pytest.fixture
def words(model: str, tmp_path: Path) -> tuple[object, ...]:
    """A command that restores five images into a folder."""
    source = images(tmp_path / "in", 5)
    return ("denoise", source, "--model", model, "--p", 0.3, "--force", "-o", f"{tmp_path}/out/")


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Which files a folder's images are: another one, or the same one written again, has another stamp."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.png"))}


def again(run: Run, words: tuple[object, ...], out: Path, *more: object) -> tuple[int, set[str]]:
    """The exit code of the command, and the outputs it wrote."""
    before = stamps(out)
    code = run(*words, *more)
    return code, {name for name, stamp in stamps(out).items() if before.get(name) != stamp}


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from restore.cli import main; main()", *map(str, words)]


# -------------------------------------------------------------------------------------------------- once and only once


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


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


# ---------------------------------------------------------------------------------------------- what has changed since


def test_an_image_that_changed_is_restored_again_and_no_other(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    assert run(*words) == 0
    Image.fromarray(np.zeros(bad_images.SHAPE, np.uint8)).save(tmp_path / "in" / "0002.png")
    assert again(run, words, tmp_path / "out") == (0, {"0002.restored.png"})
    assert again(run, words, tmp_path / "out") == (0, set())


def test_an_output_that_is_gone_is_made_again_and_one_that_was_edited_is_kept(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*words) == 0
    (out / "0001.restored.png").unlink()
    assert again(run, words, out) == (0, {"0001.restored.png"})
    (out / "0003.restored.png").write_bytes(b"precious")
    assert again(run, words, out) == (5, set())
    assert again(run, words, out, "--skip-existing") == (0, set())
    assert again(run, words, out, "--overwrite") == (0, {"0003.restored.png"})


def test_other_settings_are_refused_unless_told_to_overwrite(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(*words) == 0
    capsys.readouterr()
    assert again(run, words, out, "--p", 0.1, "--soft") == (2, set())
    assert "p was 0.3 and is 0.1; soft was False and is True; give --overwrite" in capsys.readouterr().err
    assert again(run, words, out, "--p", 0.1, "--soft", "--skip-existing") == (0, set())
    # How it is computed is no part of the result.
    assert again(run, words, out, "--workers", 1, "--max-pixels", 1000, "--max-memory", "1G") == (0, set())
    assert again(run, words, out, "--p", 0.1, "--soft", "--overwrite")[1] == set(stamps(out))
    assert again(run, words, out, "--p", 0.1, "--soft") == (0, set())
    assert again(run, words, out) == (2, set())


def test_another_prior_is_refused_and_so_is_one_that_was_trained_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from priors import random_prior

    from restore.zoo import save

    prior = saved_prior(tmp_path / "m", bad_images.SHAPE)
    words = ("denoise", images(tmp_path / "in", 2), "--model", prior, "--p", 0.3, "-o", f"{tmp_path}/out/")
    assert run(*words) == 0
    save(prior, random_prior(bad_images.SHAPE, name=prior.name, seed=1), "")
    assert again(run, words, tmp_path / "out") == (2, set())
    assert "has changed" in capsys.readouterr().err
    assert again(run, words, tmp_path / "out", "--overwrite")[0] == 0
    assert again(run, words, tmp_path / "out") == (0, set())


def test_row49_an_image_of_the_same_name_elsewhere_is_no_change_of_the_first(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    assert run(*words) == 0
    elsewhere = ("denoise", images(tmp_path / "other", 1), *words[2:])
    assert again(run, elsewhere, tmp_path / "out") == (5, set())


def test_another_mask_is_another_setting_and_a_changed_one_is_a_change(run: Run, model: str, tmp_path: Path) -> None:
    masks, out = tmp_path / "masks", tmp_path / "out"
    masks.mkdir()
    for name in ("0000.png", "0001.png", "other.png"):
        Image.fromarray(bad_images.HOLE).save(masks / name)
    words = ("complete", images(tmp_path / "in", 2), "--model", model, "-o", f"{out}/", "--mask")
    assert run(*words, masks) == 0
    assert again(run, (*words, masks / "other.png"), out) == (2, set())
    Image.fromarray(bad_images.HOLE[::-1].copy()).save(masks / "0001.png")
    os.utime(masks / "0001.png", (1, 1))
    assert again(run, (*words, masks), out) == (0, {"0001.restored.png"})


def test_failures_are_noted_and_tried_again(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "in" / "0002.png", tmp_path / "out"
    whole = bad.read_bytes()
    bad.write_bytes(whole[:50])
    assert run(*words) == 6
    capsys.readouterr()
    assert again(run, words, out) == (6, set())
    assert "1 of 1 images failed" in capsys.readouterr().err
    told = [json.loads(line) for line in (out / NAME).read_text().splitlines() if line]
    assert [line["input"] for line in told if "error" in line] == [os.path.relpath(bad, out)] * 2
    bad.write_bytes(whole)
    assert again(run, words, out) == (0, {"0002.restored.png"})


def test_folders_that_move_together_still_know_each_other(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    assert run(*words) == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("in", "out"):
        (tmp_path / name).rename(moved / name)
    assert again(run, ("denoise", moved / "in", *words[2:-1], moved / "out"), moved / "out") == (0, set())


# --------------------------------------------------------------------------------------------------- folders and files


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


# ---------------------------------------------------------------------------------------------------- order and memory


def test_lines_of_json_are_in_the_order_of_the_inputs(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "0001.png").write_bytes(b"")
    (tmp_path / "in" / "0003.png").write_bytes(b"no image")
    assert run(*words, "--json", "--workers", 3) == 6
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(line["input"]).name for line in told] == [f"{index:04}.png" for index in range(5)]
    assert ["error" in line for line in told] == [False, True, False, True, False]


def test_the_number_of_workers_does_not_change_a_bit(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    for count in (1, 2, 9):
        assert run(*words[:-1], f"{tmp_path}/out-{count}/", "--workers", count, "--soft") == 0
    contents = [
        [path.read_bytes() for path in sorted((tmp_path / f"out-{count}").glob("*.png"))] for count in (1, 2, 9)
    ]
    assert len(contents[0]) == 5 and contents[0] == contents[1] == contents[2]


def test_images_under_way_are_few_however_many_there_are(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, told, most, lock = 0, 0, 0, Lock()
    read_picture, print_json = stages.read_picture, "restore.cli.batch.restoring.print_json"

    def counted(*given: object, **options: object) -> object:
        nonlocal read, most
        with lock:
            read += 1
            most = max(most, read - told)
        return read_picture(*given, **options)

    def tell(record: object) -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(stages, "read_picture", counted)
    monkeypatch.setattr(print_json, tell)
    source = images(tmp_path / "in", 6 * CHUNK, (10, 12))
    assert (
        run("denoise", source, "--model", model, "--p", 0.3, "-o", f"{tmp_path}/out/", "--json", "--fit", "resize") == 0
    )
    assert read == told == 6 * CHUNK
    assert most <= 3 * CHUNK


def test_large_images_go_in_smaller_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    from restore.cli.batch.jobs import Job
    from restore.images import Picture

    monkeypatch.setattr(stages, "CHUNK_PIXELS", 100)
    sides = [3, 3, 11, 10, 5, 5, 5, 5, 3]
    loaded = [stages.Loaded(Job("", ""), Picture(np.zeros((side, side), np.uint8)), None, {}) for side in sides]
    assert [len(portion) for portion in stages.portions(loaded)] == [3, 1, 4, 1]


@pytest.mark.parametrize("count", [1, 3])
def test_workers_keep_the_order_and_take_no_more_than_they_may(count: int) -> None:
    taken, most = 0, 0

    def items():
        nonlocal taken
        for item in range(50):
            taken += 1
            yield item

    with workers(count) as mapped:
        for index, result in enumerate(mapped(lambda item: item * item, items(), 5)):
            assert result == index * index
            most = max(most, taken - index)
    assert taken == 50 and most == (1 if count == 1 else 6)


def test_workers_drop_what_is_not_begun_when_the_caller_fails() -> None:
    done: list[int] = []
    fails = Event()

    def slow(item: int) -> None:
        if item:
            fails.wait(HANG)
            time.sleep(0.01)
        done.append(item)

    with suppress(KeyboardInterrupt), workers(2) as mapped:
        for _ in mapped(slow, range(1000), 500):
            fails.set()
            raise KeyboardInterrupt
    assert 0 < len(done) < 500
