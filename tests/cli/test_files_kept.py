"""Files beside a result, such as a map or a mask, are not replaced either; and odd facts of files and names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, Run, strokes
from PIL import Image

from restore.errors import OutputError


@pytest.mark.parametrize("existing", [False, True], ids=["", "result"])
@pytest.mark.parametrize(
    "words", [f"denoise --model {QUICK} --p 0.1 --uncertainty", "corrupt --task patch:8 --mask-output"]
)
def test_a_file_beside_a_result_is_replaced_only_by_overwrite(
    words: str, existing: bool, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, own, result = strokes(tmp_path, 1) / "0000.png", tmp_path / "own.png", tmp_path / "result.png"
    given = (*words.split(), own, image, "-o", result)
    own.write_bytes(b"mine")
    if existing:
        result.write_bytes(b"old")
    assert run(*given) == OutputError.exit_code and own.read_bytes() == b"mine" and result.exists() is existing
    assert run(*given, "--skip-existing") == 0
    said = capsys.readouterr().err
    assert own.read_bytes() == b"mine" and (result.read_bytes() == b"old") is existing
    assert existing or (("own.png" in said or "0000.png" in said) and "exist" in said)
    assert run(*given, "--overwrite") == 0
    assert Image.open(own).size == Image.open(result).size == (28, 28)


def test_corrupt_says_that_colours_become_grey(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    Image.fromarray(colours).save(tmp_path / "colours.png")
    assert run("corrupt", tmp_path / "colours.png", "--task", "flip:0.1", "-o", tmp_path / "x.png") == 0
    line, done = capsys.readouterr().err.splitlines()
    assert "colours.png" in line and "luminance" in line and "x.png" in done


def test_nothing_is_said_of_colours_where_nothing_becomes_grey(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (70, 70, 3), dtype=np.uint8)
    Image.fromarray(colours).save(tmp_path / "colours.png")
    assert run("denoise", tmp_path / "colours.png", "-o", tmp_path / "x.png") == 0
    said = capsys.readouterr().err
    assert "not sure" in said and "luminance" not in said


@pytest.mark.parametrize(("zero", "mode"), [((299,), "L"), ((301,), "L"), ((299, 301), "L"), ((299,), "P")], ids=str)
def test_a_resolution_of_nothing_is_left_out(zero: tuple[int, ...], mode: str, run: Run, tmp_path: Path) -> None:
    """A TIFF with 0/0 dots per inch."""
    image = Image.open(strokes(tmp_path, 1) / "0000.png").convert("1").convert(mode)
    image.save(tmp_path / "x.tif", dpi=(299, 301), compression="tiff_adobe_deflate")
    content = (tmp_path / "x.tif").read_bytes()
    for number in zero:
        wanted = number.to_bytes(4, "little") + (1).to_bytes(4, "little")
        assert wanted in content
        content = content.replace(wanted, bytes(8))
    (tmp_path / "x.tif").write_bytes(content)
    assert run("denoise", tmp_path / "x.tif", "--model", QUICK, "--p", 0.1, "-o", tmp_path / "y.tif") == 0
    assert Image.open(tmp_path / "y.tif").size == (28, 28)


@pytest.mark.parametrize(
    "words",
    [
        ("denoise", "{image}", "-o", "{name}/"),
        ("denoise", "{image}", "--uncertainty", "{name}/"),
        ("corrupt", "{image}", "--task", "flip:0.1", "-o", "{name}/"),
        ("import", "{name}", "--name", "mine"),
        ("import", "{name}.npz", "--name", "mine"),
        ("import", "{image}", "--name", "{name}"),
        ("examples", "{name}"),
        ("train", "{name}.toml"),
    ],
)
def test_a_name_that_is_too_long_is_no_fault_of_the_program(words: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    image = strokes(tmp_path, 1) / "0000.png"
    code = run(*(word.format(image=image, name="x" * 300) for word in words))
    assert code in range(2, 8)
