"""Inputs and outputs by URL: what a bucket holds is restored as files are, and appears whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import numpy as np
import pytest
from commands import QUICK, Run, fault, levels, strokes
from PIL import Image

import restore
from restore import buckets
from restore.buckets import Remote, path_of
from restore.errors import TooLarge

fsspec = pytest.importorskip("fsspec")
WORDS = ("--model", QUICK, "--p", 0.1, "--force")
COUNT = 4


@pytest.fixture
def memory() -> Iterator[object]:
    """A store of objects in this process, with pictures in one folder."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def filled(memory, tmp_path: Path) -> Path:
    folder = strokes(tmp_path / "in", COUNT)
    for path in folder.iterdir():
        memory.pipe_file(f"/scans/{path.name}", path.read_bytes())
    memory.pipe_file("/scans/notes.txt", b"no image")
    memory.pipe_file("/scans/inner/0009.png", b"not looked into")
    return folder


def objects(memory, folder: str) -> dict[str, bytes]:
    return {PurePath(name).name: memory.cat_file(name) for name in memory.find(folder)}


def test_a_folder_of_a_bucket_becomes_another(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    assert run("denoise", filled, "-o", f"{tmp_path}/out/", *WORDS) == 0
    here = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS) == 0
    assert objects(memory, "/clean") == here and len(here) == COUNT


def test_results_lie_beside_their_images_and_are_no_inputs(run: Run, memory, filled: Path) -> None:
    assert run("denoise", "memory://scans/", *WORDS) == 0
    assert run("denoise", "memory://scans/", *WORDS, "--skip-existing") == 0
    names = set(objects(memory, "/scans"))
    assert {f"000{number}.restored.png" for number in range(COUNT)} <= names and len(names) == 2 * COUNT + 2


def test_a_bucket_and_this_machine_go_together(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    url = (tmp_path / "a name" / "x.png").as_uri()
    (tmp_path / "a name").mkdir()
    assert run("denoise", "memory://scans/0000.png", "-o", url, *WORDS) == 0
    assert run("denoise", (filled / "0000.png").as_uri(), "-o", "memory://out.png", *WORDS) == 0
    assert memory.cat_file("/out.png") == (tmp_path / "a name" / "x.png").read_bytes()
    masks = ("--mask", "memory://masks", "--model", QUICK, "-o", f"{tmp_path}/out/")
    hole = np.zeros((28, 28), np.uint8)
    hole[8:12, 8:12] = 255
    Image.fromarray(hole).save(tmp_path / "hole.png")
    for number in range(COUNT):
        memory.pipe_file(f"/masks/000{number}.png", (tmp_path / "hole.png").read_bytes())
    assert run("complete", "memory://scans", *masks, "--uncertainty", "memory://maps/") == 0
    assert len(objects(memory, "/maps")) == COUNT == len(list((tmp_path / "out").iterdir()))


def test_existing_objects_are_kept_or_replaced_as_files_are(
    run: Run, memory, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("denoise", "memory://scans", "-o", "memory://clean/", *WORDS)
    memory.pipe_file("/clean/0001.restored.png", b"mine")
    assert run(*words) == 5
    assert "memory://clean/0001.restored.png" in fault(capsys) and len(objects(memory, "/clean")) == 1
    assert run(*words, "--skip-existing") == 0
    assert len(objects(memory, "/clean")) == COUNT and memory.cat_file("/clean/0001.restored.png") == b"mine"
    assert run(*words, "--overwrite") == 0
    assert memory.cat_file("/clean/0001.restored.png") != b"mine"


def test_parts_of_a_bucket_are_those_of_a_folder(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS, "--part", "1/2") == 0
    assert run("denoise", filled, "-o", f"{tmp_path}/out/", *WORDS, "--part", "1/2") == 0
    assert set(objects(memory, "/clean")) == {path.name for path in (tmp_path / "out").iterdir()}


def test_an_input_is_never_replaced(run: Run, memory, filled: Path) -> None:
    before = objects(memory, "/scans")
    assert run("denoise", "memory://scans/0000.png", "-o", "memory://scans/0000.png", *WORDS, "--overwrite") == 2
    assert run("denoise", "memory://scans/0000.png", "memory://scans/0001.png", "-o", "memory://one.png", *WORDS) == 2
    assert objects(memory, "/scans") == before


@pytest.mark.parametrize(
    ("name", "code"),
    [("memory://scans/none.png", 3), ("memory://nothing/", 3), ("nosuch://scans/x.png", 3)],
    ids=["object", "folder", "scheme"],
)
def test_what_is_not_there_is_named(
    name: str, code: int, run: Run, memory, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", name, "-o", "memory://out.png", *WORDS) == code
    assert name.rstrip("/") in fault(capsys)


def test_a_store_that_refuses_fails_each_image_and_leaves_nothing(
    run: Run, memory, filled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refused(Exception):
        """What libraries of buckets raise is often no OSError."""

    def pipe_file(self: object, path: str, *given: object, **more: object) -> None:
        raise Refused("AccessDenied")

    monkeypatch.setattr(type(memory), "pipe_file", pipe_file)
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS) == 6
    assert capsys.readouterr().err.count("AccessDenied") == COUNT
    assert not memory.exists("/clean")


def test_an_object_is_written_in_one_call(run: Run, memory, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store shows it whole or not at all; nothing else is opened to write."""
    modes, open_file = list[str](), type(memory).open
    monkeypatch.setattr(
        type(memory),
        "open",
        lambda self, path, mode="rb", **more: (
            modes.append("whole" if "data" in more else mode),
            open_file(self, path, mode, **more),
        )[1],
    )
    assert run("denoise", "memory://scans/0000.png", "-o", "memory://out.png", *WORDS) == 0
    assert set(modes) <= {"rb", "whole"} and "rb" in modes


def test_endless_objects_are_not_read_to_their_end(memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/long.png", bytes(2**26 + 1000))
    with pytest.raises(TooLarge):
        restore.denoise("memory://long.png", QUICK, p=0.1, max_pixels=10)


def test_python_reads_urls_too(memory, filled: Path) -> None:
    image = restore.denoise("memory://scans/0000.png", QUICK, p=0.1, force=True)
    again = restore.denoise(filled / "0000.png", QUICK, p=0.1, force=True)
    assert np.array_equal(np.asarray(image), np.asarray(again)) and levels(filled / "0000.png").any()


def test_without_the_library_a_line_names_the_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['fsspec'] = None; from restore.cli import main; main()"
    words = [sys.executable, "-c", code, "denoise", "memory://a.png", "-o", str(tmp_path / "x.png")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "restore-prior[buckets]" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["s3://b/k/a.png", "memory://", "gs://b", "zip://a.png::s3://b/c.zip", "az://c@d.e/x"])
def test_urls_stay_what_they_are(name: str) -> None:
    assert isinstance(path_of(name), Remote) and str(path_of(name)) == name
    assert str(path_of(name) / "x.png").startswith(name.rstrip("/")) and path_of(name) == path_of(name)


@pytest.mark.parametrize("name", ["a:/b.png", "C://b", "-", "a/b://c", "://x"])
def test_files_of_this_machine_are_no_urls(name: str) -> None:
    assert path_of(name) == Path(name)


def test_folders_are_told_from_objects(memory, filled: Path) -> None:
    assert buckets.is_folder("memory://scans") and not buckets.is_folder("memory://scans/0000.png")
    assert not buckets.is_folder("memory://nothing")
