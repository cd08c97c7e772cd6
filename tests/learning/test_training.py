"""From a folder of images to a prior with a name: the command, the interface, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import Run
from lessons import SHORT, bits
from refusals import refused

import restore
from restore import zoo
from restore.errors import InputError, OutputError
from restore.learning.lesson import lesson_of
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import read_recipe


@pytest.mark.thorough
def test_one_command_makes_a_prior_that_is_found_by_its_name(
    home: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "images", "--name", "parts", *SHORT) == 0
    said = capsys.readouterr().err
    assert "6x5 pixels" in said and "2 epochs" in said
    header, means = zoo.describe(zoo.find("parts")), zoo.load(zoo.find("parts")).pixel_means
    assert header.white == zoo.describe(Path("runs/parts")).white == pytest.approx(float(means.mean()), abs=1e-4)
    assert (header.name, header.image_shape, header.threshold, header.method) == ("parts", (5, 6), 127, "matched")
    assert header.data == "images"
    card = (zoo.find("parts") / "card.md").read_text()
    assert "restore train images --name parts --epochs 2" in card and "[data.gathering]" in card
    assert run("denoise", "images/000.png", "--model", "parts", "--p", 0.1, "--engine", "torch", "-o", "clean.png") == 0
    log = [json.loads(line) for line in Path("runs/parts/log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(log) == 2 and "validation_error" in log[-1]


def test_a_size_that_is_printed_is_one_that_may_be_asked_for(
    home: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "images", "--name", "parts", "--shape", "6x4", "--hidden", 2, *SHORT) == 0
    assert "images of 6x4 pixels" in capsys.readouterr().err
    assert zoo.describe(zoo.find("parts")).image_shape == (4, 6)


def test_a_folder_of_data_sets_without_the_recipes_own_is_no_folder_of_images(tmp_path: Path) -> None:
    for name in ("mnist", "caltech101_silhouettes"):
        (tmp_path / name).mkdir()
    shutil.copy("assets/page-noisy.png", tmp_path / "mnist")
    recipe = read_recipe(Path("training/recipes/conv-text.toml"))
    with refused(InputError, tmp_path, "mnist, caltech101-silhouettes", "text"):
        lesson_of(recipe, TrainOptions(data=tmp_path))


@pytest.mark.thorough
def test_the_recipe_in_the_run_folder_repeats_the_run(home: Path, run: Run) -> None:
    assert run("train", "images", "--name", "parts", "--hidden", 5, *SHORT) == 0
    assert read_recipe(Path("runs/parts/recipe.toml")).digest == zoo.describe(zoo.find("parts")).recipe
    assert run("train", "runs/parts/recipe.toml", "--name", "again", "--quiet") == 0
    assert bits("again") == bits("parts")


@pytest.mark.thorough
def test_python_takes_the_same_options_and_makes_the_same_prior(home: Path, run: Run) -> None:
    assert run("train", "images", "--name", "parts", "--hidden", 5, *SHORT) == 0
    made = restore.train(home / "images", name="mine", hidden=5, epochs=2, keep=True)
    assert made.description.image_shape == (5, 6)
    assert bits("mine") == bits("parts")
    with refused(OutputError, "mine", "overwrite"):
        restore.train(home / "images", name="mine", keep=True)
    restore.train(home / "images", name="mine", hidden=4, epochs=1, keep=True, overwrite=True)
    assert zoo.describe(zoo.find("mine")).hidden == 4


REFUSED = {
    "36-name-of-no-folder": (("images", "--name", "a/b"), 2, "name becomes a folder"),
    "36-name-of-a-published-prior": (("images", "--name", "tap-mnist"), 5, "is the name of a published prior"),
    "36-method": (("images", "--name", "x", "--method", "magic"), 2, "method must be auto or one of tap"),
    "36-shape": (("images", "--name", "x", "--shape", "28"), 2, "--shape"),
    "36-both": (("images", "--name", "x", "--epochs", 1, "--minutes", 1), 2, "give one"),
    "01-no-such-folder": (("nowhere", "--name", "x"), 3, "nowhere"),
    "36-recipe-and-more": (("r.toml", "--method", "tap", "--held-out", 0.2), 2, "leave --method, --held-out out"),
}


@pytest.mark.parametrize(("words", "code", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_done_is_said_in_one_line(
    words: tuple[object, ...], code: int, says: str, home: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", *words) == code
    said = capsys.readouterr().err
    assert says in said and "Traceback" not in said
    assert not Path("runs").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["export.packing.beside_weights", "learning.train.write_report"])
def test_a_run_stopped_after_its_training_goes_on_to_the_same_files(
    moment: str, home: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    words = ("train", "images", "--name", "parts", "--hidden", 5, *SHORT)
    assert run(*words) == 0
    zoo.find("parts").rename("whole")
    shutil.rmtree("runs")
    with monkeypatch.context() as patched:
        patched.setattr(f"restore.{moment}", stop)
        assert run(*words) == 130
    assert run(*words, "--resume") == 0
    assert Path("runs/parts/report.json").exists()
    kept = zoo.find("parts")
    assert (kept / zoo.WEIGHTS).read_bytes() == Path("whole", zoo.WEIGHTS).read_bytes()
    assert (kept / zoo.GRAPH).exists()
    # Only what is its own: not the prior of another recipe that has come there meanwhile.
    assert run("train", "images", "--name", "parts", "--hidden", 4, *SHORT, "--run", "other", "--overwrite") == 0
    capsys.readouterr()
    assert run(*words, "--resume") == 5
    assert "parts: holds a prior already; give --overwrite" in capsys.readouterr().err
    assert zoo.describe(zoo.find("parts")).hidden == 4


@pytest.mark.thorough
def test_overwrite_replaces_a_run(home: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("train", "images", "--name", "parts", *SHORT)
    assert run(*words) == 0
    first = Path("runs/parts/log.jsonl").read_text("utf-8").splitlines()
    # Of a run, and of a run whose prior has gone.
    assert run(*words) == 5
    shutil.rmtree(zoo.find("parts"))
    capsys.readouterr()
    assert run(*words, "--hidden", 3) == 7
    assert "--overwrite" in capsys.readouterr().err
    # Settings may be others, and a damaged checkpoint is no hindrance.
    Path("runs/parts/checkpoint.safetensors").write_bytes(b"damaged")
    assert run(*words, "--hidden", 3, "--overwrite") == 0
    assert zoo.describe(Path("runs/parts")).hidden == zoo.describe(zoo.find("parts")).hidden == 3
    assert len(Path("runs/parts/log.jsonl").read_text("utf-8").splitlines()) == len(first)
