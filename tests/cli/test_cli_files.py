"""Many images: in order, in bounded memory, written whole one by one, and continued after a stop."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from threading import Lock

import bad_images
import numpy as np
import pytest
from commands import QUICK, Run, command, fault, images, levels, stamps, strokes
from PIL import Image

from restore.cli.batch import run as running
from restore.cli.batch import work
from restore.inference.threads import portions


def again(run: Run, words: tuple[object, ...], out: Path, *more: object) -> tuple[int, set[str]]:
    """The exit code of the command, and the outputs it wrote."""
    before = stamps(out)
    code = run(*words, *more)
    return code, {name for name, stamp in stamps(out).items() if before.get(name) != stamp}


DIGIT = Path(__file__).parents[2] / "assets" / "digit-noisy.png"
NOISE = 255 * np.random.default_rng(0).integers(0, 2, (28, 28), dtype=np.uint8)


def test_a_stopped_run_goes_on_with_what_is_missing(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert again(run, words, out)[0] == 0
    assert again(run, words, out) == (5, set())
    (out / "0001.restored.png").unlink()
    assert again(run, words, out, "--skip-existing") == (0, {"0001.restored.png"})
    assert again(run, words, out, "--skip-existing") == (0, set())
    assert again(run, words, out, "--overwrite") == (0, set(stamps(out)))


def test_parts_restore_every_image_once_and_need_each_other_not(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    written = [again(run, words, out, "--part", f"{part}/3") for part in (2, 3, 1)]
    assert [code for code, _ in written] == [0, 0, 0]
    assert sorted(name for _, names in written for name in names) == sorted(stamps(out)) and len(stamps(out)) == 5
    assert again(run, words, out, "--part", "2/3", "--skip-existing") == (0, set())


def test_a_result_is_no_input_of_another_part(run: Run, tmp_path: Path) -> None:
    """Whichever part it is in: machines run at any time."""
    source = images(tmp_path / "in", 1)
    taken = source / "0000.restored.png"
    taken.write_bytes((source / "0000.png").read_bytes())
    for part in ("1/2", "2/2"):
        assert run("denoise", source / "0000.png", taken, "--model", QUICK, "--p", "0.1", "--part", part) == 2


def test_a_map_without_its_image_is_made_again(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    maps = ("--uncertainty", f"{tmp_path}/maps/")
    assert run(*words, *maps) == 0
    (tmp_path / "out" / "0001.restored.png").unlink()
    assert again(run, words, tmp_path / "out", *maps, "--skip-existing") == (0, {"0001.restored.png"})


def test_with_strict_a_picture_that_is_not_sure_is_not_written(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = strokes(tmp_path / "in", 3)
    Image.fromarray(NOISE).save(source / "0001.png")
    strict = ("--model", QUICK, "--strict")
    assert run("denoise", source / "0001.png", *strict) == 4
    said = fault(capsys)
    assert "0001.png" in said and "--force" in said and not list(source.glob("*.restored.png"))
    assert again(run, ("denoise", source, *strict), source) == (6, {"0000.restored.png", "0002.restored.png"})
    assert run("denoise", source / "0001.png", "--model", QUICK, "--force") == 0


def test_a_picture_in_which_nothing_changes_is_copied(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte where the formats are the same, with its last bytes, too; else with the same pixels."""
    blank = np.full((40, 50), 255, np.uint8)
    for name, pixels, word in (("clean", blank, "clean"), ("noise", NOISE, "not sure")):
        path = tmp_path / f"{name}.png"
        Image.fromarray(pixels).save(path, compress_level=1)
        path.write_bytes(path.read_bytes() + b"more")
        assert run("denoise", path, "--model", QUICK) == 0
        assert (tmp_path / f"{name}.restored.png").read_bytes() == path.read_bytes()
        assert run("denoise", path, "--model", QUICK, "-o", tmp_path / f"{name}.bmp") == 0
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / f"{name}.bmp")), pixels)
        told = capsys.readouterr().err
        assert f"as it came, {word}" in told and "restored with" not in told


def test_the_last_line_counts_what_pictures_came_back_as(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = strokes(tmp_path / "in", 2)
    Image.fromarray(NOISE).save(source / "noise.png")
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(source / "blank.png")
    assert run("denoise", source, "--model", QUICK, "--json") == 0
    told = capsys.readouterr()
    *_, named, last = told.err.splitlines()
    assert all(word in last for word in ("4 images", "2 restored with", "1 as they came, clean", "not sure"))
    assert "2 of 4 images" in named and "0000.png" in named and "noise.png" not in named
    outcomes = [json.loads(line)["outcome"] for line in told.out.splitlines()]
    assert sorted(outcomes) == ["clean", "not sure", "restored", "restored"]


def test_a_map_of_classes_gets_no_advice_that_loses_them(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    colours = np.array([[230, 25, 75], [60, 180, 75], [255, 225, 25], [0, 130, 200]], np.uint8)
    classes = np.indices((40, 40)).sum(0) // 10 % 4
    Image.fromarray(colours[classes]).save(tmp_path / "map.png")
    assert run("denoise", tmp_path / "map.png", "--strict") == 4
    said = fault(capsys)
    assert "class" in said and "--sigma" not in said and "--p" not in said


@pytest.mark.parametrize("more", [(), ("--p", "0.1"), ("--p", "0.1", "--quiet")], ids=["found", "given", "quiet"])
def test_one_line_tells_what_was_done(
    more: tuple[str, ...], run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", DIGIT, "-m", QUICK, "-o", tmp_path / "x.png", *more) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith(f": {tmp_path}/x.png")]
    assert len(lines) == (0 if "--quiet" in more else 1)
    for line in lines:
        assert QUICK in line and "p = 0." in line and "%" in line and ("(found)" in line) == (not more)


def test_a_reader_who_leaves_ends_a_batch_quietly(run: Run, tmp_path: Path) -> None:
    source = strokes(tmp_path / "in", 5)
    words = ("denoise", source, "--model", QUICK, "--p", 0.3, "--force", "-o", f"{tmp_path}/out/")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(*words, "--json", "--quiet"), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert run(*words, "--skip-existing") == 0 and len(stamps(tmp_path / "out")) == 5


@pytest.mark.parametrize(
    "words", [["-", "other.png"], ["-", "-o", "out/"], ["n.png", "-o", "-", "--json"]], ids=" ".join
)
def test_streams_that_do_not_fit(
    words: list[str], run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(images(tmp_path / "in", 1))
    assert run("denoise", *words, "--model", model, "--p", 0.1) == 2
    assert [path.name for path in Path().iterdir()] == ["0000.png"]


def test_an_image_does_not_go_to_a_terminal(
    run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("denoise", tmp_path / "in" / "0000.png", *words[2:-1], "-") == 2


@pytest.mark.usefixtures("quick_disk")
def test_pictures_under_way_are_few_however_many_there_are(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, told, most, lock = 0, 0, 0, Lock()
    read_picture = work.read_picture

    def counted(*given: object, **options: object) -> object:
        nonlocal read, most
        with lock:
            read += 1
            most = max(most, read - told)
        return read_picture(*given, **options)

    def tell(record: object) -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(work, "read_picture", counted)
    monkeypatch.setattr(running, "print_json", tell)
    source = images(tmp_path / "in", 6 * running.CHUNK_PICTURES)
    assert run("denoise", source, "--model", model, "--p", 0.3, "-o", f"{tmp_path}/out/", "--json") == 0
    assert read == told == 6 * running.CHUNK_PICTURES and most <= 3 * running.CHUNK_PICTURES


def test_large_pictures_go_in_smaller_portions() -> None:
    sides = [3, 3, 11, 10, 5, 5, 5, 5, 3]
    assert list(map(len, portions(sides, lambda side: side**2, 64, 100))) == [3, 1, 4, 1]
    assert list(map(len, portions(sides, lambda side: side**2, 2, 1000))) == [2, 2, 2, 2, 1]


def test_faults_in_threads_name_options_as_the_command_does(
    run: Run, words: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(threading.enumerate())  # other tests of this process may have left some
    assert run(*words, "--max-pixels", 10) == 6
    assert capsys.readouterr().err.count("--max-pixels") == 5
    assert set(threading.enumerate()) <= before


def test_masks_in_a_folder_go_by_name(run: Run, model: str, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    masks.mkdir()
    Image.fromarray(bad_images.HOLE).save(masks / "0000.png")
    words = ("complete", images(tmp_path / "in", 2), "--mask", masks, "--model", model, "-o", f"{tmp_path}/out/")
    assert again(run, words, tmp_path / "out") == (6, {"0000.restored.png"})


# --- one image through streams ---


def test_stdin_to_stdout(tmp_path: Path) -> None:
    words = command("denoise", "-", "--model", QUICK, "--p", 0.1)
    done = subprocess.run(words, input=DIGIT.read_bytes(), capture_output=True, check=True)
    (tmp_path / "out.png").write_bytes(done.stdout)
    assert levels(tmp_path / "out.png").shape == (28, 28)
