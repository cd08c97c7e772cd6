"""Files of another size than the prior's, on the command line: rows 14, 27, 30 and 73."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image
from priors import saved_prior


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_prior(tmp_path_factory.mktemp("models")))


def saved(path: Path, shape: tuple[int, int]) -> np.ndarray:
    pixels = np.where(np.random.default_rng(0).random(shape) < 0.3, 255, 0).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 5), (10, 12), (25, 31)], ids=str)
def test_row14_73_files_of_any_size_come_back_at_theirs(
    shape: tuple[int, int], model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path / "it.png", shape)
    words = ("--model", model, "--p", 0.1, "--force", "--json", "--soft", "--uncertainty", tmp_path / "u.png")
    assert run("denoise", tmp_path / "it.png", *words) == 0
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert record["status"] == "converged" and record["p"] == 0.1
    assert any("in tiles of 12x10 pixels" in note for note in record["notes"]) == (shape[0] > 10 or shape[1] > 12)
    for name in ("it.restored.png", "u.png"):
        assert np.asarray(Image.open(tmp_path / name)).shape == shape


def test_row30_the_mask_of_a_large_file_is_kept_to(model: str, run: Run, tmp_path: Path) -> None:
    pixels = saved(tmp_path / "it.png", (25, 31))
    hidden = np.zeros((25, 31), bool)
    hidden[4:21, 6:26] = True
    Image.fromarray((hidden * 255).astype(np.uint8)).save(tmp_path / "mask.png")
    words = ("--mask", tmp_path / "mask.png", "--model", model, "--force")
    assert run("complete", tmp_path / "it.png", *words) == 0
    found = np.asarray(Image.open(tmp_path / "it.restored.png"))
    assert (found[~hidden] == pixels[~hidden]).all() and set(np.unique(found[hidden])) <= {0, 255}


def test_many_files_of_several_sizes_are_restored_in_one_run(
    model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = [(10, 12), (25, 31), (3, 5), (10, 12)]
    for number, shape in enumerate(shapes):
        saved(tmp_path / f"{number}.png", shape)
    words = ("--model", model, "--p", 0.1, "--force", "-o", f"{tmp_path / 'out'}/")
    assert run("denoise", *(tmp_path / f"{number}.png" for number in range(4)), *words) == 0
    for number, shape in enumerate(shapes):
        (found,) = (tmp_path / "out").glob(f"{number}*.png")
        assert np.asarray(Image.open(found)).shape == shape
    # Those of the prior's own size are what they are alone.
    assert run("denoise", tmp_path / "0.png", "--model", model, "--p", 0.1, "--force", "-o", tmp_path / "one.png") == 0
    (first,) = (tmp_path / "out").glob("0*.png")
    assert np.array_equal(np.asarray(Image.open(first)), np.asarray(Image.open(tmp_path / "one.png")))


@pytest.mark.thorough
def test_a_large_file_shows_how_far_it_has_come(
    model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restore.inference.tiles.blocks.WINDOWS", 64)
    monkeypatch.setattr("restore.progress.PLAIN_SECONDS", 0.0)
    saved(tmp_path / "it.png", (60, 60))
    assert run("denoise", tmp_path / "it.png", "--model", model, "--p", 0.1, "--force") == 0
    assert "restored 100%" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_folder_of_several_sizes_is_damaged_and_restored(
    model: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = [(25, 31), (3, 50), (12, 10)]
    clean = tmp_path / "clean"
    clean.mkdir()
    for number, shape in enumerate(shapes):
        saved(clean / f"{number}.png", shape)
    holes = ("--task", "flip:0.1+holes:3:0.2", "--mask-output", f"{tmp_path / 'holes'}/")
    assert run("corrupt", clean, *holes, "-o", f"{tmp_path / 'torn'}/") == 0
    torn, masks = sorted((tmp_path / "torn").glob("*.png")), sorted((tmp_path / "holes").glob("*.png"))
    assert [np.asarray(Image.open(path)).shape for path in (*torn, *masks)] == 2 * shapes
    words = ("complete", tmp_path / "torn", "--mask", tmp_path / "holes", "--p", 0.1, "--model", model, "--force")
    words = (*words, "-o", f"{tmp_path / 'whole'}/", "--json")
    assert run(*words) == 0
    outputs = sorted((tmp_path / "whole").glob("*.png"))
    assert [np.asarray(Image.open(path)).shape for path in outputs] == shapes
    before = [path.read_bytes() for path in outputs]
    alone = ("complete", torn[0], "--mask", masks[0], "--p", 0.1, "--model", model, "--force", "-o", tmp_path / "a.png")
    assert run(*alone) == 0 and (tmp_path / "a.png").read_bytes() == before[0]
