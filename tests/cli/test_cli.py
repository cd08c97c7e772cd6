"""The command line: what it writes, what it prints, and its answer to every bad input of the table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bad_images
import numpy as np
import pytest
from PIL import Image
from priors import saved_prior
from waiting import HANG, wait_for

from restore import zoo

Run = Callable[..., int]

# A prior with a graph, and an image for it: a process that restores with it need not load torch, which takes seconds.
QUICK, DIGIT = "tap-mnist-25", Path(__file__).parents[2] / "assets" / "digit-noisy.png"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_prior(tmp_path_factory.mktemp("model"), bad_images.SHAPE))


def image(folder: Path, name: str = "image.png") -> Path:
    path = folder / name
    Image.fromarray(bad_images.GREY).save(path, "PNG")
    return path


def levels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def fault(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr that tells of a fault."""
    said = capsys.readouterr().err
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.startswith("restore: ")]
    assert len(lines) == 1, said
    return lines[0]


# ------------------------------------------------------------------------------------------------------- what it does


def test_denoise_writes_black_and_white_beside_the_input(run: Run, model: str, tmp_path: Path) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, "--p", 0.1) == 0
    assert set(np.unique(levels(tmp_path / "image.restored.png"))) <= {0, 255}


def test_json_tells_how_it_went(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, "--p", 0.1, "--json", "--uncertainty", tmp_path / "sd.png") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["output"] == str(tmp_path / "image.restored.png")
    assert record["engine"] == "torch"
    assert record["converged"] and record["iterations"] >= 1
    assert record["channel"] == {"p": 0.1, "sigma": None, "mask": None}
    assert any("cut to black and white" in note for note in record["notes"])
    assert levels(tmp_path / "sd.png").max() > 0


def test_complete_leaves_visible_pixels_bit_for_bit(run: Run, model: str, tmp_path: Path) -> None:
    source, mask = image(tmp_path), tmp_path / "mask.png"
    Image.fromarray(bad_images.HOLE).save(mask)
    assert run("complete", source, "--mask", mask, "--model", model) == 0
    restored, hidden = levels(tmp_path / "image.restored.png"), bad_images.HOLE > 0
    assert (restored[~hidden] == bad_images.GREY[~hidden]).all()
    assert set(np.unique(restored[hidden])) <= {0, 255}


def test_p_lets_visible_pixels_change_too(run: Run, model: str, tmp_path: Path) -> None:
    source, mask = image(tmp_path), tmp_path / "mask.png"
    Image.fromarray(bad_images.HOLE).save(mask)
    assert run("complete", source, "--mask", mask, "--model", model, "--p", 0.2) == 0
    assert set(np.unique(levels(tmp_path / "image.restored.png"))) <= {0, 255}


def test_other_sizes_need_fit(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = tmp_path / "big.png"
    Image.fromarray(np.kron(bad_images.GREY, np.ones((2, 2), np.uint8))).save(big)
    assert run("denoise", big, "--model", model, "--p", 0.1) == 4
    assert "--fit resize" in fault(capsys)
    assert run("denoise", big, "--model", model, "--p", 0.1, "--fit", "resize") == 0
    assert levels(tmp_path / "big.restored.png").shape == (20, 24)


def test_a_folder_and_its_masks(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "masks").mkdir()
    for name in ("a.png", "b.png"):
        image(tmp_path / "in", name)
    Image.fromarray(bad_images.HOLE).save(tmp_path / "masks" / "a.png")
    code = run("complete", tmp_path / "in", "--mask", tmp_path / "masks", "--model", model, "-o", f"{tmp_path}/out/")
    assert code == 6
    assert [path.name for path in (tmp_path / "out").glob("*.png")] == ["a.restored.png"]
    assert "b.png" in capsys.readouterr().err


def test_a_batch_goes_on_where_it_was_stopped(run: Run, model: str, tmp_path: Path) -> None:
    first, second = image(tmp_path, "a.png"), image(tmp_path, "b.png")
    assert run("denoise", first, "--model", model, "--p", 0.1) == 0
    stamp = (tmp_path / "a.restored.png").stat().st_mtime_ns
    assert run("denoise", first, second, "--model", model, "--p", 0.1) == 5
    assert run("denoise", first, second, "--model", model, "--p", 0.1, "--skip-existing") == 0
    assert (tmp_path / "a.restored.png").stat().st_mtime_ns == stamp
    assert (tmp_path / "b.restored.png").exists()


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


def test_corrupt_adds_noise_to_grey_levels(run: Run, tmp_path: Path) -> None:
    source, noisy, mask = image(tmp_path), tmp_path / "noisy.png", tmp_path / "mask.png"
    words = ("corrupt", source, "--task", "noise:0.02+patch:4", "-o", noisy, "--mask-output", mask)
    assert run(*words) == 0
    off, hidden = levels(noisy).astype(float) - bad_images.GREY, levels(mask) == 255
    assert hidden.sum() == 16 and (levels(noisy)[hidden] == 0).all()
    assert 0 < np.abs(off[~hidden]).max() < 5 * 0.02 * 255 + 1
    assert run("corrupt", source, "--task", "noise:-1", "-o", tmp_path / "other.png") == 2


def test_a_disk_full_behind_stdout_is_an_output_fault() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("wb") as full:
        words = command("denoise", DIGIT, "--model", QUICK, "--p", 0.1, "-o", "-")
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 5 and done.stderr.count(b"\n") == 1


def test_masks_of_a_damaged_batch_fit_its_images(run: Run, model: str, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        image(tmp_path, name)
    torn, masks = f"{tmp_path}/torn/", f"{tmp_path}/masks/"
    assert run("corrupt", tmp_path, "--task", "patch:4", "-o", torn, "--mask-output", masks) == 0
    assert run("complete", torn, "--mask", masks, "--model", model, "-o", f"{tmp_path}/whole/") == 0
    assert len(list((tmp_path / "whole").glob("*.png"))) == 2


def test_one_bad_image_does_not_stop_the_damage_of_others(run: Run, tmp_path: Path) -> None:
    image(tmp_path, "a.png")
    (tmp_path / "bad.png").write_text("no image")
    image(tmp_path, "c.png")
    assert run("corrupt", tmp_path, "--task", "flip:0.1", "-o", f"{tmp_path}/out/") == 6
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.corrupted.png", "c.corrupted.png"]


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


def test_evaluate_prints_scores_of_priors_and_baselines(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(0).integers(0, 256, (20, *bad_images.SHAPE), dtype=np.uint8))
    for name in (model, "ope", "nn", "median"):
        assert run("evaluate", name, "--data", data, "--task", "flip:0.1", "--n", 9, "--json", "--quiet") == 0
        report = json.loads(capsys.readouterr().out)
        assert report["n"] == 9 and 0 <= report["error_all"]["mean"] <= 1
    assert run("evaluate", model, "--data", data, "--task", "patch:4", "--mask", "unknown", "--quiet") == 0


def test_train_from_a_recipe(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    np.save("data.npy", np.random.default_rng(0).integers(0, 256, (30, 4, 5), dtype=np.uint8))
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "data.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 2\nbatch = 10\n"
        # The graph that is made soonest.
        '[inference]\nsolver = "mean_field"\nmodes = 0\nstarts = 0\n'
    )
    assert run("train", "mine.toml", "--every", 2) == 0
    assert zoo.describe(Path("runs/mine/epochs/0002")).name == "mine-epoch-2"
    assert "mine" in capsys.readouterr().err
    assert run("train", "mine.toml") == 5
    assert "--overwrite" in fault(capsys)
    assert run("train", "mine.toml", "--overwrite") == 7
    assert "--resume" in fault(capsys)
    assert run("info", "mine") == 0
    card = capsys.readouterr().out
    assert "hidden = 3" in card and "restore train" in card
    Image.fromarray(np.zeros((4, 5), np.uint8)).save("small.png")
    assert run("denoise", "small.png", "--model", "mine", "--p", 0.2) == 0


@pytest.mark.parametrize("binarisation", ["threshold", "sampled"])
def test_training_images_are_made_binary_as_the_recipe_says(
    binarisation: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from restore.data import binarise, sample_binary
    from restore.errors import TrainingError

    monkeypatch.chdir(tmp_path)
    grey = np.random.default_rng(0).integers(0, 256, (30, 4, 5), dtype=np.uint8)
    np.save("data.npy", grey)
    Path("mine.toml").write_text(
        f'name = "mine"\nseed = 3\n[data]\nsource = "data.npy"\nthreshold = 90\nbinarisation = "{binarisation}"\n'
        '[prior]\nhidden = 3\n[learner]\nmethod = "contrastive"\n[training]\nepochs = 1\n'
    )
    seen = []

    def stand_in(recipe: object, images: Any, *arguments: object, **options: object) -> None:
        seen.append(images.numpy())
        raise TrainingError("seen enough")

    monkeypatch.setattr("restore.learning.pipeline.train", stand_in)
    assert run("train", "mine.toml", "-o", "out") == 7
    wanted = binarise(grey, 90) if binarisation == "threshold" else sample_binary(grey, 3)
    np.testing.assert_array_equal(seen[0], wanted)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("case", [pytest.param(c, id=c.row) for c in bad_images.IMAGES if c.possible])
def test_bad_image(
    case: bad_images.Case, run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = case.write(tmp_path)
    # A random prior explains few images, and some of these are of very few pixels.
    words = ("--model", model, "--p", 0.1, "--fit", "resize", "--force", "-o", tmp_path / "out.tif", "--quiet")
    code = run("denoise", path, *words)
    # Some unusual images are fine but for what the output's format can hold.
    if case.error is None:
        assert code in (0, 2)
        assert (tmp_path / "out.tif").exists() == (code == 0)
    elif case.row.startswith("row02") and path.is_dir():
        assert code in (2, 3)
    else:
        assert code == case.exit_code
        assert not (tmp_path / "out.tif").exists()
        assert case.says in fault(capsys)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.row) for c in bad_images.MASKS if c.possible])
def test_bad_mask(
    case: bad_images.Case, run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = image(tmp_path, "whole-image.png")
    mask = case.write(tmp_path)
    code = run("complete", source, "--mask", mask, "--model", model, "-o", tmp_path / "out.png")
    assert code == case.exit_code
    assert (tmp_path / "out.png").exists() == (case.error is None)
    if case.error is not None:
        fault(capsys)


def test_row31_an_empty_mask_gives_an_unchanged_copy_and_a_warning(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, mask = image(tmp_path), tmp_path / "mask.png"
    Image.fromarray(np.zeros_like(bad_images.GREY)).save(mask)
    assert run("complete", source, "--mask", mask, "--model", model) == 0
    assert (levels(tmp_path / "image.restored.png") == bad_images.GREY).all()
    assert "nothing to fill" in capsys.readouterr().err


def test_row29_inverted_polarity_is_noticed(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The random prior's pixels are white in 3 of 10 cases. At p = .47 no image is foreign to it.
    dark, light = np.zeros(bad_images.SHAPE, np.uint8), np.full(bad_images.SHAPE, 255, np.uint8)
    for name, content, warned in (("dark.png", dark, False), ("light.png", light, True)):
        Image.fromarray(content).save(tmp_path / name)
        assert run("denoise", tmp_path / name, "--model", model, "--p", 0.47) == 0
        assert ("--invert" in capsys.readouterr().err) == warned
    (tmp_path / "light.restored.png").unlink()
    assert run("denoise", tmp_path / "light.png", "--model", model, "--p", 0.1) == 4
    assert "it looks inverted: try --invert" in fault(capsys) and not (tmp_path / "light.restored.png").exists()
    assert run("denoise", tmp_path / "light.png", "--model", model, "--p", 0.47, "--invert") == 0
    assert "--invert" not in capsys.readouterr().err


USAGE = {
    "row35-p-above-one": ["--p", "1.5"],
    "row35-p-negative": ["--p", "-0.1"],
    "row35-p-nan": ["--p", "nan"],
    "row35-p-missing": [],
    "row36-p-no-number": ["--p", "much"],
    "row36-unknown-option": ["--p", "0.1", "--sharpness", "3"],
    "row36-max-pixels-zero": ["--p", "0.1", "--max-pixels", "0"],
    "row37-no-such-device": ["--p", "0.1", "--device", "cuda:9"],
    "row37-no-device": ["--p", "0.1", "--device", "quantum"],
    "row37-no-device-in-onnxruntime": ["--p", "0.1", "--device", "cuda", "--engine", "onnx"],
    "row36-no-engine": ["--p", "0.1", "--engine", "steam"],
    "row49-no-format": ["--p", "0.1", "-o", "out.xyz"],
    "row54-json-and-image-on-stdout": ["--p", "0.1", "-o", "-", "--json"],
}


@pytest.mark.parametrize("words", USAGE.values(), ids=USAGE.keys())
def test_usage_fault(
    words: list[str], run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, *words) == 2
    fault(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["image.png"]


@pytest.mark.parametrize("p", ["0", "0.5", "1"])
def test_row35_boundary_values_of_p_are_defined(p: str, run: Run, model: str, tmp_path: Path) -> None:
    source = image(tmp_path)
    assert run("denoise", source, "--model", model, "--p", p) == 0
    ink = bad_images.GREY > 127
    restored = levels(tmp_path / "image.restored.png") > 127
    if p == "0":
        assert (restored == ink).all()
    if p == "1":
        assert (restored == ~ink).all()


def test_row38_an_unknown_model_is_answered_with_near_names(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    saved_prior(tmp_path / "restore" / "models")
    assert run("denoise", image(tmp_path), "--model", "randum-12x10", "--p", 0.1) == 4
    assert "random-12x10" in fault(capsys)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.row) for c in bad_images.OUTPUTS if c.possible])
def test_bad_output(
    case: bad_images.OutputCase, run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs, output = case.arrange(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = [] if output is None else ["-o", output]
    code = run("denoise", *inputs, "--model", model, "--p", 0.1, "--fit", "resize", *words)
    assert code == case.error.exit_code
    fault(capsys)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", bad_images.ODD_NAMES.values(), ids=bad_images.ODD_NAMES.keys())
def test_row56_odd_names_work(name: str, run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(bad_images.GREY).save(open(tmp_path / name, "wb"), "PNG")  # noqa: SIM115, PTH123
    assert run("denoise", "--model", model, "--p", 0.1, "-o", "out.png", "--", name) == 0
    assert (tmp_path / "out.png").exists()


RECIPES = {
    "row36-unknown-key": 'name = "x"\n[data]\nsource = "mnist"\ntreshold = 3',
    "row36-wrong-type": 'name = "x"\nseed = "seven"',
    "row36-not-toml": "name = ",
    "row36-empty": "",
}


@pytest.mark.parametrize("text", RECIPES.values(), ids=RECIPES.keys())
def test_bad_recipe(text: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    assert run("train", recipe) == 2
    assert str(recipe) in fault(capsys)


def test_row53_a_full_disk_leaves_the_old_file(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = image(tmp_path), tmp_path / "out.png"
    output.write_bytes(b"precious")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("denoise", source, "--model", model, "--p", 0.1, "-o", output, "--overwrite") == 5
    assert "No space left" in fault(capsys)
    assert output.read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.png", "out.png"]


def test_row62_a_solver_that_does_not_converge_is_reported(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from priors import random_prior

    from restore.zoo import save

    prior = random_prior(bad_images.SHAPE)
    impatient = replace(prior.description.inference, max_iter=1, tol=0.0)
    save(tmp_path / "m", replace(prior, description=replace(prior.description, inference=impatient)), "")
    assert run("denoise", image(tmp_path), "--model", tmp_path / "m", "--p", 0.3, "--json") == 0
    said = capsys.readouterr()
    assert not json.loads(said.out)["converged"]
    assert "iteration limit" in said.err


# ------------------------------------------------------------------------------------------------------- processes


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from restore.cli import main; main()", *map(str, words)]


def test_stdin_to_stdout(tmp_path: Path) -> None:
    words = command("denoise", "-", "--model", QUICK, "--p", 0.1)
    done = subprocess.run(words, input=DIGIT.read_bytes(), capture_output=True, check=True)
    (tmp_path / "out.png").write_bytes(done.stdout)
    assert levels(tmp_path / "out.png").shape == (28, 28)


def test_row54_a_closed_stdout_ends_quietly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    reader, writer = os.pipe()
    os.close(reader)
    saved_prior(tmp_path / "restore" / "models")
    done = subprocess.run(command("models"), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["row58-int", "row58-term"]
)
def test_row58_training_stopped_by_a_signal_goes_on(number: int, code: int, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.random.default_rng(0).integers(0, 256, (200, 6, 6), dtype=np.uint8))
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f'name = "mine"\n[data]\nsource = "{tmp_path}/data.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 4000\nbatch = 10\ncheckpoint_every = 10000\n[inference]\nmodes = 0\nstarts = 1\n"
    )
    words = ("train", recipe, "-o", tmp_path / "model", "--run", tmp_path / "run", "--threads", 1)
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    log = tmp_path / "run" / "log.jsonl"
    wait_for(lambda: log.exists() and log.stat().st_size > 0, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == code, said
    assert b"--resume" in said and len(list((tmp_path / "run").glob("checkpoint-*.json"))) == 1
