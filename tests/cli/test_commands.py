"""What each command writes and prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import bad_images
import numpy as np
import pytest
from commands import QUICK, Run, image, levels
from PIL import Image
from priors import saved_prior

import restore
from restore import zoo


def test_json_tells_how_it_went(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, "--p", 0.1, "--json", "--uncertainty", tmp_path / "sd.png") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["output"] == str(tmp_path / "image.restored.png")
    assert record["engine"] == "torch"
    assert record["status"] == "converged" and record["iterations"] >= 1
    assert (record["p"], record["sigma"], record["mask"], record["found"]) == (0.1, None, None, None)
    assert any("cut to black and white" in note for note in record["notes"])
    assert levels(tmp_path / "sd.png").max() > 0


def test_other_sizes_are_restored_in_tiles_or_resized(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    big = tmp_path / "big.png"
    Image.fromarray(np.kron(bad_images.GREY, np.ones((2, 2), np.uint8))).save(big)
    for words in (["--force"], ["--fit", "resize"]):
        assert run("denoise", big, "--model", model, "--p", 0.1, *words, "--overwrite") == 0
        assert levels(tmp_path / "big.restored.png").shape == (20, 24)
        assert ("of 12x10" in capsys.readouterr().err) == ("--force" in words)


def test_images_of_one_stem_in_two_formats_keep_their_outputs_apart(run: Run, model: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    picture = Image.fromarray(bad_images.GREY)
    for name in ("a.png", "a.jpg", "a.tif"):
        picture.save(tmp_path / "in" / name)
    words = ("denoise", tmp_path / "in", "--model", model, "--p", 0.1, "--force", "-o", f"{tmp_path}/out/")
    assert run(*words) == 0
    found = {path.name: path.stat().st_ino for path in (tmp_path / "out").glob("a*")}
    assert sorted(found) == ["a.jpg.restored.png", "a.restored.png", "a.restored.tif"]
    # One more of that stem changes no other's name.
    picture.save(tmp_path / "in" / "a.bmp")
    assert run(*words, "--skip-existing") == 0
    after = {path.name: path.stat().st_ino for path in (tmp_path / "out").glob("a*")}
    assert found.items() <= after.items() and after.keys() - found.keys() == {"a.bmp.restored.png"}


def test_corrupt_is_fixed_by_its_seed_and_writes_the_mask(run: Run, tmp_path: Path) -> None:
    source = image(tmp_path)
    for name in ("one.png", "two.png"):
        assert run("corrupt", source, "--task", "flip:0.3", "--seed", 5, "-o", tmp_path / name) == 0
    assert (levels(tmp_path / "one.png") == levels(tmp_path / "two.png")).all()
    mask = tmp_path / "mask.png"
    assert run("corrupt", source, "--task", "patch:4", "-o", tmp_path / "torn.png", "--mask-output", mask) == 0
    torn, hidden = levels(tmp_path / "torn.png"), levels(mask) == 255
    assert hidden.sum() == 16
    assert (torn[hidden] == 0).all() and (torn[~hidden] == bad_images.GREY[~hidden]).all()


def test_corrupt_says_what_it_did(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = image(tmp_path), tmp_path / "torn.png"
    words = ("corrupt", source, "--task", "patch:4", "--seed", 3, "-o", target, "--overwrite")
    assert run(*words) == 0
    out, said = capsys.readouterr()
    assert out == "" and len(said.splitlines()) == 1
    assert all(word in said for word in (str(source), str(target), "patch:4", "seed 3"))
    assert run(*words, "--quiet") == 0 and capsys.readouterr().err == ""
    (tmp_path / "broken.png").write_text("no image")
    assert run("corrupt", source, tmp_path / "broken.png", "--task", "patch:4", "-o", f"{tmp_path}/out/") == 6
    assert "1 of 2 images" in capsys.readouterr().err


def test_the_damage_of_an_image_does_not_depend_on_the_others(run: Run, tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        image(tmp_path, name)
    words = ("corrupt", tmp_path, "--task", "flip:0.3", "--seed", 7, "-o")
    assert run(*words, f"{tmp_path}/all/") == 0
    whole = [levels(tmp_path / "all" / f"{name}.corrupted.png") for name in "abc"]
    assert (whole[0] != whole[2]).any()
    (tmp_path / "all" / "c.corrupted.png").unlink()
    assert run(*words, f"{tmp_path}/all/", "--skip-existing") == 0
    assert (levels(tmp_path / "all" / "c.corrupted.png") == whole[2]).all()
    (tmp_path / "a.png").write_text("no image")
    assert run(*words, f"{tmp_path}/rest/") == 6
    assert (levels(tmp_path / "rest" / "c.corrupted.png") == whole[2]).all()


def test_models_and_info(
    run: Run, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    saved_prior(tmp_path / "restore" / "models")
    assert run("models", "--json") == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ("random-12x10", "yours") in [(entry["name"], entry["origin"]) for entry in listed]
    assert run("info", model) == 0
    assert "A random prior" in capsys.readouterr().out
    assert run("info", "random-12x10", "--json") == 0
    assert json.loads(capsys.readouterr().out)["hidden"] == 5


def test_models_lists_first_what_is_tried_and_papers_last(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    saved_prior(tmp_path / "restore" / "models")
    assert run("models") == 0
    said = capsys.readouterr().out
    names = [line.split()[0] for line in said.splitlines() if line.startswith("  ")]
    binary = zoo.candidates((28, 28))
    tried = {
        *binary,
        zoo.reader(),
        zoo.PARTS_PRIOR,
        *(name for size in ((28, 28), (19, 19)) for name in zoo.candidates(size, grey=True)),
    }
    assert set(names[: len(tried)]) == tried and tuple(names[: len(binary)]) == binary
    assert names[len(tried)] == "random-12x10" and set(names) == set(map(str, restore.list_models()))
    assert all(re.search(f"^  {name} .*{what}", said, re.MULTILINE) for name, what in PURPOSES.items())


PURPOSES = {
    "conv-scan": "any size  scanned pages",
    "conv-text": "any size  printed text",
    "tap-mnist": "28x28  digits",
    "crbm-bp-mnist-flip20": "flip:0.2",
}


def digits(folder: Path, **pictures: np.ndarray) -> Path:
    folder.mkdir()
    for name, picture in pictures.items():
        Image.fromarray((255 * picture).astype(np.uint8)).save(folder / f"{name}.png")
    return folder


def stroke() -> np.ndarray:
    picture = np.zeros((28, 28))
    picture[6:22, 12:16] = picture[6:9, 8:20] = 1
    return picture


def test_the_level_of_a_batch_is_the_median(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(1)
    flipped = {f"x{p}": np.abs(stroke() - (draw.random((28, 28)) < p)) for p in (0.01, 0.03, 0.3)}
    source = digits(tmp_path / "in", **{name.replace(".", "-"): value for name, value in flipped.items()})
    assert run("denoise", source, "--model", QUICK, "--force", "-o", f"{tmp_path}/out/", "--json") == 0
    said = capsys.readouterr()
    levels = sorted(json.loads(line)["p"] for line in said.out.splitlines())
    assert f"p = {levels[1]:.2g} (found, {levels[0]:.2g} to {levels[2]:.2g})" in said.err
    assert f"{levels[1]:.2g}" != f"{np.mean(levels):.2g}"


def test_a_map_of_uncertainty_shows_two_standard_deviations(run: Run, tmp_path: Path) -> None:
    source = digits(tmp_path / "in", one=stroke())
    assert run("denoise", source / "one.png", "--model", QUICK, "--p", 0.2, "--uncertainty", tmp_path / "u.png") == 0
    _, wanted = restore.denoise(stroke(), QUICK, p=0.2, return_solution=True)
    np.testing.assert_allclose(levels(tmp_path / "u.png") / 255, 2 * wanted.deviations, atol=1 / 255)
    np.testing.assert_allclose(wanted.deviations**2, wanted.means * (1 - wanted.means), atol=5e-3)


def test_which_images_of_a_batch_look_inverted(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said of those whose polarity was given, and of several once; else the polarity that fits is found."""
    pictures = {"a": 1 - stroke(), "b": stroke(), "c": 1 - stroke().T, "d": stroke().T}
    source = digits(tmp_path / "in", **pictures)
    words = ("--model", QUICK, "--p", 0.05, "--json", "--overwrite", "-o", f"{tmp_path}/out/")
    assert run("denoise", source, *words) == 0
    assert "looks inverted" not in capsys.readouterr().out
    for light, dark in (("a", "b"), ("c", "d")):
        found = [levels(tmp_path / "out" / f"{name}.restored.png").astype(int) for name in (light, dark)]
        np.testing.assert_array_equal(found[0], 255 - found[1])
    assert run("denoise", source, *words, "--no-invert") == 0
    said = capsys.readouterr()
    records = [json.loads(line) for line in said.out.splitlines()]
    assert [any("looks inverted" in note for note in record["notes"]) for record in records] == [True, False] * 2
    assert [line.startswith("2 of 4 images: ") for line in said.err.splitlines() if "looks inverted" in line] == [True]


# --- restore examples ---


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_every_picture_in_a_command_of_the_documentation_is_copied(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("examples", tmp_path / "assets") == 0
    copied = {Path(line).name for line in capsys.readouterr().out.splitlines()}
    assert copied == {path.name for path in (tmp_path / "assets").iterdir()}
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?<![(/])assets/([\w-]+\.png)", shown))
    assert len(named) > 8 and named <= copied
    for name in copied:
        assert (tmp_path / "assets" / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_a_file_that_is_there_stays(run: Run, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("mine")
    assert run("examples", tmp_path) == 0
    assert (tmp_path / "page.png").read_text() == "mine"
    assert run("examples", tmp_path / "page.png") == 5
