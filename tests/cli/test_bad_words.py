"""The command line's answer to every bad input of the table."""

from __future__ import annotations

import os
from pathlib import Path

import bad_images
import numpy as np
import pytest
from commands import Run, fault, image, levels
from PIL import Image

from restore.errors import ModelError, RestoreError, UsageError

# One file of each kind; all others are read in tests of images.
MASK_FILES = ("missing", "other-size", "all-white", "soft")
FILES = ("missing", "looping-link", "text", "cut-png", "bomb-png", "nan", "film-gif", "jpeg-named-png", "1x1", "alpha")


# A random prior explains few images, and some of these are of very few pixels.
BAD = [("denoise {bad} --p 0.1 --fit resize --force --quiet", case) for case in bad_images.IMAGES if case.row in FILES]
BAD += [("complete {image} --mask {bad}", case) for case in bad_images.MASKS if case.row in MASK_FILES]


@pytest.mark.parametrize(("words", "case"), BAD, ids=[f"{words[:8]}-{case.row}" for words, case in BAD])
def test_bad_file(
    words: str, case: bad_images.Case, run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"{bad}": case.write(tmp_path), "{image}": image(tmp_path, "whole-image.png")}
    code = run(*(names.get(word, word) for word in words.split()), "--model", model, "-o", tmp_path / "out.tif")
    assert code == case.exit_code and (tmp_path / "out.tif").exists() == (case.error is None)
    if case.error is not None:
        fault(capsys)


def test_an_empty_mask_gives_an_unchanged_copy_and_a_warning(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, mask = image(tmp_path), tmp_path / "mask.png"
    Image.fromarray(np.zeros_like(bad_images.GREY)).save(mask)
    assert run("complete", source, "--mask", mask, "--model", model) == 0
    assert (levels(tmp_path / "image.restored.png") == bad_images.GREY).all()
    assert "mask" in capsys.readouterr().err


def test_a_given_polarity_that_does_not_fit_is_noticed(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The random prior's pixels are white in 3 of 10 cases.
    dark, light = np.zeros(bad_images.SHAPE, np.uint8), np.full(bad_images.SHAPE, 255, np.uint8)
    light[0, 0], dark[0, 0] = 0, 255
    for name, content, warned in (("dark.png", dark, False), ("light.png", light, True)):
        Image.fromarray(content).save(tmp_path / name)
        assert run("denoise", tmp_path / name, "--model", model, "--p", 0.47, "--no-invert") == 0
        assert ("--no-invert" in capsys.readouterr().err) == warned
    (tmp_path / "light.restored.png").unlink()
    assert run("denoise", tmp_path / "light.png", "--model", model, "--p", 0.47, "--invert") == 0
    assert "--invert" not in capsys.readouterr().err


USAGE = {
    "p-negative": ["--p", "-0.1"],
    "unknown-option": ["--p", "0.1", "--sharpness", "3"],
    "max-pixels-zero": ["--p", "0.1", "--max-pixels", "0"],
    "no-such-device": ["--p", "0.1", "--device", "cuda:9"],
    "no-device": ["--p", "0.1", "--device", "quantum"],
    "no-device-in-onnxruntime": ["--p", "0.1", "--device", "quantum", "--engine", "onnx"],
    "no-engine": ["--p", "0.1", "--engine", "steam"],
    "no-format": ["--p", "0.1", "-o", "out.xyz"],
    "json-and-image-on-stdout": ["--p", "0.1", "-o", "-", "--json"],
    **{f"jobs-{jobs}": ["--jobs", jobs] for jobs in ("0", "-1", "many")},
    **{f"part-{part}": ["--part", part] for part in ("0/3", "4/3", "1", "1/0", "a/b", "-1/2")},
}


@pytest.mark.parametrize("words", USAGE.values(), ids=USAGE.keys())
def test_usage_fault(
    words: list[str], run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, *words) == 2
    fault(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["image.png"]


ODD_NAMES = {
    "brackets": "[bold]x[0].png",
    "newline": "two\nlines.png",
    "leading-dash": "-x.png",
    "not-utf-8": os.fsdecode(b"caf\xe9.png"),
    "255-bytes": "n" * 251 + ".png",
    "spaces": " x .png",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
def test_odd_names_work(name: str, run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(bad_images.GREY).save(open(tmp_path / name, "wb"), "PNG")  # noqa: SIM115, PTH123
    assert run("denoise", "--model", model, "--p", 0.1, "-o", "out.png", "--", name) == 0
    assert (tmp_path / "out.png").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [("--model no-such-prior", ModelError), ("--model {model} --sigma 0.1", UsageError)],
    ids=["no prior", "other damage"],
)
def test_a_folder_for_results_is_not_made_where_there_will_be_none(
    words: str, error: type[RestoreError], run: Run, model: str, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    given = words.format(model=model).split()
    assert run("denoise", image(tmp_path), "-o", f"{folder}/", *given) == error.exit_code and not folder.exists()
