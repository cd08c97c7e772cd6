"""A file of a job is either read or written, and written once, whatever names and streams lead to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bad_images
import pytest
from commands import Run
from PIL import Image
from priors import saved_prior

from restore.errors import UsageError
from restore.images.outputs import STDIN, STDOUT, refuse_clashes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_prior(tmp_path_factory.mktemp("model"), bad_images.SHAPE)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with an image, a mask and other names for them."""
    Image.fromarray(bad_images.GREY).save(tmp_path / "n.png")
    Image.fromarray(bad_images.HOLE).save(tmp_path / "m.png")
    (tmp_path / "soft.png").symlink_to("m.png")
    (tmp_path / "hard.png").hardlink_to(tmp_path / "m.png")
    (tmp_path / "again").symlink_to(".")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@contextmanager
def redirected(number: int, path: Path | None) -> Iterator[None]:
    """A standard stream of this process led to or from a file, as `<` and `>>` do."""
    if path is None:
        yield
        return
    kept, file = os.dup(number), os.open(path, os.O_RDWR | os.O_APPEND)
    os.dup2(file, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(file)


# The command, and the files that stdin comes from and stdout goes to.
CLASHES: dict[str, tuple[str, str, str]] = {
    "output-is-mask": ("complete - --mask m.png -o m.png", "n.png", ""),
    "output-is-a-link-to-the-mask": ("complete - --mask m.png -o soft.png", "n.png", ""),
    "output-is-stdin": ("denoise - --p 0.1 -o n.png", "n.png", ""),
    "map-is-output-by-another-folder": ("denoise - --p 0.1 -o s.png --uncertainty again/s.png", "n.png", ""),
    "stdout-is-stdin": ("denoise - --p 0.1", "n.png", "n.png"),
    "stdout-is-input": ("denoise n.png --p 0.1 -o -", "", "n.png"),
    "a-file's-output-is-mask": ("complete n.png --mask m.png -o m.png", "", ""),
    "a-file's-map-is-output": ("denoise n.png --p 0.1 -o s.png --uncertainty again/s.png", "", ""),
    "damage-and-its-mask": ("corrupt n.png --task patch:4 -o s.png --mask-output again/s.png", "", ""),
}


@pytest.mark.parametrize(("words", "stdin", "stdout"), CLASHES.values(), ids=CLASHES.keys())
def test_clash(
    words: str, stdin: str, stdout: str, run: Run, model: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = contents(files)
    of_model = [] if words.startswith("corrupt") else ["--model", model]
    with redirected(0, Path(stdin) if stdin else None), redirected(1, Path(stdout) if stdout else None):
        code = run(*words.split(), *of_model, "--overwrite")
    assert code == 2
    assert contents(files) == before


def test_what_is_no_file_clashes_with_nothing(tmp_path: Path) -> None:
    devices = Path(os.devnull)
    with redirected(0, devices), redirected(1, devices):
        refuse_clashes([STDIN, tmp_path / "missing.png"], [STDOUT, tmp_path / "a.png", tmp_path / "b.png"])
    with pytest.raises(UsageError):
        (tmp_path / "a.png").write_bytes(b"")
        (tmp_path / "b.png").symlink_to("a.png")
        refuse_clashes([tmp_path / "a.png"], [tmp_path / "b.png"])


def test_different_files_work(run: Run, model: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    words = ["complete", "n.png", "--mask", "m.png", "--model", model, "-o", "s.png", "--uncertainty", "u.png"]
    assert run(*words) == 0
    before = contents(files)
    assert run(*words, "--overwrite") == 0
    assert contents(files) == before
    # A mask may be asked for where the image is, and replaced where it is not read.
    assert run("corrupt", "n.png", "--task", "patch:4", "-o", "s.png", "--mask-output", "m.png", "--overwrite") == 0
