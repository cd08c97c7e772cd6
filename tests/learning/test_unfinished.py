"""A run that was stopped is of use: its best prior so far is found by its name."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from lessons import CPU, SHORT, WORDS, bars, bits, lesson

import restore
from restore import zoo
from restore.errors import OutputError
from restore.learning.run.place import Place, reserve
from restore.learning.run.session import Session
from restore.learning.train import learn


def stopping(at: int, number: int = signal.SIGINT) -> Callable[..., Any]:
    """In place of what shows a run: what stops it after some epochs."""

    def watch(passed: Any) -> None:
        if passed.done == at and not passed.stage:
            os.kill(os.getpid(), number)

    return lambda *about: watch


def stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch, *words: object, at: int = 2, number: int = signal.SIGINT
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("restore.cli.live.watcher", stopping(at, number))
        assert run(*(words or WORDS)) == 128 + number


# --- by its name ---


@pytest.mark.thorough
def test_row58_a_stopped_run_is_found_by_its_name_and_by_its_folder(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch)
    said = capsys.readouterr().err
    command = "restore train images --name parts --hidden 5 --epochs 4 --quiet --resume"
    assert f"stopped; `{command}` goes on; model parts restores with epoch " in said
    assert " wrong pixels after flip:0.1" in said
    about = zoo.describe(zoo.find("parts"))
    assert about.name == "parts" and about.unfinished in said and about.run == str(home / "runs" / "parts")
    assert (zoo.find("runs/parts") / zoo.WEIGHTS).read_bytes() == (zoo.find("parts") / zoo.WEIGHTS).read_bytes()
    for model in ("parts", "runs/parts"):
        words = ("denoise", "images/000.png", "--model", model, "--p", 0.1, "--engine", "torch")
        assert run(*words, "-o", f"{model.replace('/', '-')}.png") == 0
    capsys.readouterr()
    assert run("models") == 0 and f"unfinished: {about.unfinished}" in capsys.readouterr().out
    assert run("info", "parts") == 0
    card = capsys.readouterr().out
    assert f"**Unfinished**: {about.unfinished}" in card and str(home / "runs" / "parts") in card

    # What it ends with takes its place, and is what a run that was left alone ends with.
    assert run(*WORDS, "--resume") == 0
    about = zoo.describe(zoo.find("parts"))
    assert (about.unfinished, about.run) == ("", "") and "Unfinished" not in (zoo.find("parts") / zoo.CARD).read_text()
    assert zoo.describe(Path("runs/parts")) == about
    assert run(*(word if word != "parts" else "whole" for word in WORDS)) == 0
    assert bits("parts") == bits("whole")


def test_row58_sigterm_leaves_the_same_and_a_machine_without_torch_is_told_what_to_install(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch, number=signal.SIGTERM)
    assert "model parts restores with epoch " in capsys.readouterr().err
    monkeypatch.setattr("restore.inference.open.find_spec", lambda library: None)
    assert run("denoise", "images/000.png", "--model", "parts", "--p", 0.1, "-o", "clean.png") == 2
    assert "needs torch; pip install" in capsys.readouterr().err


def test_a_recipe_stopped_before_anything_was_judged_leaves_its_newest_checkpoint(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
    name = "x"
    data = {source = "images"}
    prior = {hidden = 3}
    learner = {method = "contrastive"}
    training = {epochs = 4, batch = 10}
    inference = {modes = 0, starts = 1}
    """
    Path("r.toml").write_text("\n".join(line.strip() for line in text.splitlines()))
    stopped(run, monkeypatch, "train", "r.toml", "-o", "here", "--quiet", at=3)
    # By the path that was asked for, and by that of the run.
    assert zoo.describe(Path("here")).unfinished == "epoch 3 of 4, not judged"
    assert bits("here") == bits("runs/x")


@pytest.mark.thorough
def test_a_finished_prior_stays_until_another_is_finished_too(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "images", "--name", "parts", "--hidden", 3, *SHORT) == 0
    before = bits("parts")
    shutil.rmtree("runs")
    assert run(*WORDS) == 5 and not Path("runs").exists()
    stopped(run, monkeypatch, *WORDS, "--overwrite")
    assert bits("parts") == before
    assert "model runs/parts restores with epoch" in capsys.readouterr().err
    # Whoever goes on says so again.
    assert run(*WORDS, "--resume") == 5
    assert run(*WORDS, "--resume", "--overwrite") == 0
    assert bits("parts") == bits("runs/parts") != before


def test_the_unfinished_prior_of_another_run_stays_too(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch)
    before = bits("parts")
    capsys.readouterr()
    for more in ((), ("--resume",)):
        assert run(*WORDS, "--run", "other", *more) == 5
        assert f"holds the unfinished prior of a run in {home / 'runs' / 'parts'}; give --resume" in (
            capsys.readouterr().err
        )
    assert bits("parts") == before
    stopped(run, monkeypatch, *WORDS, "--run", "other", "--overwrite")
    assert zoo.describe(zoo.find("parts")).run == str(home / "other")
    # The first run has its own still, and does not take back what is not its any more.
    assert bits("runs/parts") == before
    assert run(*WORDS, "--resume") == 5


def test_a_name_that_is_taken_while_a_run_goes_on_is_not_taken_from_its_owner(home: Path) -> None:
    place = reserve("parts", None, overwrite=False, run=Path("runs/parts"), resume=False)
    assert place.target is not None
    other = learn(lesson(epochs=1), Session(Path("other")), device=CPU)
    Place(Path("other"), place.target).keep(other)
    before = (place.target / zoo.WEIGHTS).read_bytes()
    made = lesson(hidden=4)
    learnt = learn(made, Session(Path("runs/parts"), usable=partial(place.keep_unfinished, made)), device=CPU)
    with pytest.raises(OutputError, match="holds a prior already"):
        place.keep(learnt)
    assert (place.target / zoo.WEIGHTS).read_bytes() == before
    assert zoo.describe(Path("runs/parts")).hidden == 4


@pytest.mark.thorough
def test_python_keeps_the_best_so_far_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"name": "mine", "hidden": 5, "epochs": 3, "run": "here", "keep": True}
    with monkeypatch.context() as patched:
        draw = "restore.learning.run.report.Drawer.draw"
        patched.setattr(draw, lambda self, prior, *more, **last: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as caught:
            restore.train(list(bars()), **asked)
    (note,) = caught.value.__notes__
    assert note.startswith("restore.train(..., run='here', resume=True) goes on; model mine restores with epoch ")
    noisy = bars()[0]
    for model in ("mine", "here"):
        assert restore.denoise(noisy, model=model, p=0.1, engine="torch").shape == noisy.shape
    assert restore.load("mine", engine="torch").description.unfinished.startswith("epoch ")
    restore.train(list(bars()), **asked, resume=True)
    assert not zoo.describe(zoo.find("mine")).unfinished


# --- with another limit ---


def test_row59_what_may_not_change_is_said_with_the_reason(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch)
    capsys.readouterr()
    assert run(*(6 if word == 5 else word for word in WORDS), "--resume") == 7
    said = capsys.readouterr().err
    assert "recipe.prior.hidden was 5 and is 6" in said
