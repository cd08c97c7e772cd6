"""A run that was stopped is of use: its best prior so far is found, and another limit of time goes on with it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_judging import SHAPE, in_time, timed
from test_judging import bars as columns
from test_training import CPU, SHORT, Run, bars, bits, home, lesson

import restore
from restore import zoo
from restore.errors import OutputError
from restore.learning.pipeline import train
from restore.learning.recipes.recipe import parse, read_recipe
from restore.learning.run.folder import Stopped
from restore.learning.run.keeping import Place, reserve
from restore.learning.run.session import Session
from restore.learning.train import learn
from restore.progress import Passed
from restore.zoo.description import Description

__all__ = ["home"]

WORDS = ("train", "images", "--name", "parts", "--hidden", 5, "--epochs", 4, "--quiet")


def stopping(at: int, number: int = signal.SIGINT) -> Callable[..., Any]:
    """In place of what draws pictures of a run: what stops it after some epochs."""

    def watch(passed: Any) -> None:
        if passed.done == at and not passed.stage:
            os.kill(os.getpid(), number)

    return lambda *about: watch


def stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch, *words: object, at: int = 2, number: int = signal.SIGINT
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("restore.report.passing.drawer", stopping(at, number))
        assert run(*(words or WORDS)) == 128 + number


# --- by its name ---


def test_row58_a_stopped_run_is_found_by_its_name_and_by_its_folder(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch)
    said = capsys.readouterr().err
    command = "restore train images --name parts --hidden 5 --epochs 4 --quiet --resume"
    assert f"stopped; `{command}` goes on; --model parts restores with epoch " in said
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
    assert f"**Unfinished**: this is {about.unfinished}" in card and str(home / "runs" / "parts") in card

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
    assert "--model parts restores with epoch " in capsys.readouterr().err
    monkeypatch.setattr("restore.inference.opening._installed", lambda library: library != "torch")
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


def test_a_finished_prior_stays_until_another_is_finished_too(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "images", "--name", "parts", "--hidden", 3, *SHORT) == 0
    before = bits("parts")
    shutil.rmtree("runs")
    assert run(*WORDS) == 5 and not Path("runs").exists()
    stopped(run, monkeypatch, *WORDS, "--overwrite")
    assert bits("parts") == before
    assert "--model runs/parts restores with epoch" in capsys.readouterr().err
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
    Place(Path("other"), place.target).keep(other, "typed")
    before = (place.target / zoo.WEIGHTS).read_bytes()
    made = lesson(hidden=4)
    learnt = learn(made, Session(Path("runs/parts"), usable=place.keeper(made, "typed", CPU)), device=CPU)
    with pytest.raises(OutputError, match="holds a prior already"):
        place.keep(learnt, "typed")
    assert (place.target / zoo.WEIGHTS).read_bytes() == before
    assert zoo.describe(Path("runs/parts")).hidden == 4


def test_python_keeps_the_best_so_far_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"name": "mine", "hidden": 5, "epochs": 3, "run": "here", "keep": True}
    with monkeypatch.context() as patched:
        patched.setattr("restore.report.passing.drawer", stopping(2))
        with pytest.raises(KeyboardInterrupt) as caught:
            restore.train(list(bars()), **asked)
    assert caught.value.__notes__ == [
        "restore.train(..., run='here', resume=True) goes on",
        f"restore.load({str(zoo.find('mine'))!r}) is the best so far",
    ]
    noisy = bars()[0]
    for model in ("mine", "here"):
        assert restore.denoise(noisy, model=model, p=0.1, engine="torch").shape == noisy.shape
    assert restore.load("mine", engine="torch").description.unfinished.startswith("epoch ")
    restore.train(list(bars()), **asked, resume=True)
    assert not zoo.describe(zoo.find("mine")).unfinished


# --- however it ends ---


def killed_at(write: int, folder: Path) -> None:
    """A run in a folder that dies after so many weights of priors, when the next ones are about to get their name."""
    seen = 0
    replace_file = Path.replace

    def dying(self: Path, target: Path) -> Path:
        nonlocal seen
        seen += Path(target).name == zoo.WEIGHTS
        if seen > write:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace_file(self, target)

    Path.replace = dying  # type: ignore[method-assign,assignment]
    torch.set_num_threads(1)
    place, made = Place(folder / "run", folder / "named"), lesson(tables=QUICK)
    learn(made, Session(folder / "run", usable=place.keeper(made, "typed", CPU)), device=CPU)


def killed_at_each(folder: Path) -> None:
    for write in WRITES:
        process = os.fork()
        if not process:
            killed_at(write, folder / str(write))
            os._exit(1)
        assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL


# One in the run's folder and one under the name, twice.
WRITES = range(4)

# Not judged, so that every epoch leaves a prior.
QUICK = {"training": {"watch": "", "watch_every": 1, "checkpoint_every": 1}, "inference": {"modes": 0, "starts": 1}}


def test_row57_killed_at_any_write_of_the_prior_a_whole_one_is_left(tmp_path: Path) -> None:
    # One process has to load torch; those that are killed are its forks.
    process = multiprocessing.get_context("forkserver").Process(target=killed_at_each, args=(tmp_path,), daemon=True)
    process.start()
    process.join(timeout=300)
    assert process.exitcode == 0
    for write in WRITES:
        folder = tmp_path / str(write)
        left = [zoo.load(place).description for place in (folder / "run", folder / "named") if any(place.glob("w*"))]
        assert len(left) == min(write, 2) and all(about.unfinished for about in left)
        # The next sitting sweeps up what was not finished.
        assert len(list(folder.rglob(".restore-*"))) == 1
        place, made = Place(folder / "run", folder / "named"), lesson(tables=QUICK)
        learnt = learn(made, Session(folder / "run", resume=True, usable=place.keeper(made, "typed", CPU)), device=CPU)
        assert not list(folder.rglob(".restore-*"))
    whole = learn(lesson(tables=QUICK), Session(tmp_path / "whole"), device=CPU)
    for name, value in whole.trained.prior.machine.parameters.items():
        assert torch.equal(value, learnt.trained.prior.machine.parameters[name]), name


def test_row53_a_disk_that_is_full_later_leaves_the_prior_that_was_there(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:

        def full(passed: Any) -> None:
            if passed.done == 2:
                patched.setattr(os, "fsync", refuse)

        patched.setattr("restore.report.passing.drawer", lambda *about: full)
        assert run(*WORDS) == 7
    assert zoo.load(zoo.find("parts")).description.unfinished.startswith("epoch 1 of 4, ")
    assert run(*WORDS, "--resume") == 0


def test_a_reader_sees_one_prior_while_another_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from priors import random_prior

    small, large = random_prior((3, 4), hidden=2), random_prior((3, 4), hidden=5)
    zoo.save(tmp_path / "p", small, "")
    real = Description.from_header.__func__  # type: ignore[attr-defined]

    seen: list[str] = []

    def replaced(cls: type, header: Any, where: str) -> Description:
        seen.append(where)
        # Between its header, which is read twice, and its tensors.
        if len(seen) == 2:
            zoo.save(tmp_path / "p", large, "")
        return real(cls, header, where)

    monkeypatch.setattr(Description, "from_header", classmethod(replaced))
    assert zoo.load(tmp_path / "p").machine.parameters["weights.0"].shape[1] == 2
    assert zoo.load(tmp_path / "p").machine.parameters["weights.0"].shape[1] == 5


# --- from when on ---

QUICK_GROWTH = {"samples": 100, "bias_steps": 1, "penalty": 0.001}
KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "judged": ({}, ["epoch 1 of 2, "]),
    "not judged": ({"training": {"watch": ""}}, ["epoch 1 of 2, not judged", "epoch 2 of 2, not judged"]),
    "frank-wolfe": (
        {
            "learner": {"method": "frank_wolfe", "samples": 100, "bias_steps": 1, "penalty": 0.001},
            "prior": {"hidden": 2},
        },
        ["round 1 of at most 2", "round 2 of at most 2"],
    ),
    "grown": (
        {"prior": {"hidden": "auto"}, "growth": QUICK_GROWTH | {"units": 2}},
        ["growing, round 1 of at most 2", "growing, round 2 of at most 2", "epoch 1 of 2, "],
    ),
    "grown-conditional": (
        {
            "data": {"source": "bars", "validation": 20, "task": "flip:0.1"},
            "prior": {"hidden": "auto", "family": "crbm"},
            "growth": QUICK_GROWTH | {"units": 2},
            "learner": {"method": "mean_field", "iterations": 3},
            "training": {"watch": ""},
            "inference": None,
        },
        ["epoch 1 of 2, "],
    ),
    "deep": (
        {"prior": {"family": "deep", "hidden": 4, "deeper": [3]}, "pretraining": {"epochs": 1}},
        ["epoch 1 of 2, "],
    ),
    "fully-visible": (
        {"prior": None, "learner": {"method": "bslm", "l2": 0.01, "rounds": 2}},
        ["round 1 of at most 2"],
    ),
    "principal": (
        {
            "prior": {"hidden": 2, "visible": "truncated-gaussian", "hidden_type": "gaussian"},
            "learner": {"method": "principal"},
        },
        ["round 1 of at most 1"],
    ),
}


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize(("tables", "first"), KINDS.values(), ids=KINDS.keys())
def test_there_is_something_to_restore_with_from_the_first_checkpoint_of_the_whole_prior(
    tables: dict[str, Any], first: list[str], tmp_path: Path
) -> None:
    together = {"name": "x", "seed": 5, "data": {"source": "bars", "validation": 20}, "prior": {"hidden": 4}}
    together |= {"learner": {"method": "tap", "starts": "redrawn"}, "inference": {"modes": 0, "starts": 1}}
    training = {"epochs": 2, "batch": 10, "watch": "flip:0.1"} | tables.get("training", {})
    together |= {key: value for key, value in tables.items() if key != "training"}
    if together["prior"] is None:
        together["prior"] = {"family": "fvbm"}
    if together["inference"] is None:
        del together["inference"]
    settings = parse(together | {"training": training} if not first[0].startswith("round") else together)
    seen: list[tuple[str, float]] = []

    def use(passed: Passed) -> None:
        zoo.save(tmp_path / "p", passed.machine, "")
        loaded = zoo.load(tmp_path / "p")
        assert loaded.description.run == str(tmp_path / "run") and not len(loaded.modes)
        seen.append((loaded.description.unfinished, passed.seconds))

    train(settings, columns(), SHAPE, Session(tmp_path / "run", "x", usable=use))
    assert [said[: len(start)] for (said, _), start in zip(seen, first, strict=False)] == first
    assert [seconds for _, seconds in seen] == sorted(seconds for _, seconds in seen)


# --- with another limit ---


def interrupted(at: int) -> Callable[[Any], None]:
    def watch(passed: Any) -> None:
        if passed.done == at and not passed.stage:
            os.kill(os.getpid(), signal.SIGTERM)

    return watch


@pytest.mark.usefixtures("same_learner", "quick_disk")
@pytest.mark.parametrize(
    ("minutes", "epochs", "says"),
    [
        # 26 epochs of 4 s fit into nine tenths of 116 s; 5 of them have taken 24 s with the first steps, or 4.8 s each.
        (2, 26, ""),
        # 24 s and nine tenths of the 216 s that are left, at 4.8 s each.
        (4, int((24 + 0.9 * 216) / 4.8), "another limit of time made 26 epochs 45, after step 20"),
        (1, int((24 + 0.9 * 36) / 4.8), "another limit of time made 26 epochs 11, after step 20"),
        # There is no time left at all.
        (0.1, 5, "another limit of time made 26 epochs 5, after step 20"),
    ],
)
def test_row59_another_limit_of_time_is_another_number_of_epochs(
    minutes: float, epochs: int, says: str, tmp_path: Path
) -> None:
    settings, learner = timed(minutes=2)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(5))
    assert learner.clock.now == 24
    changed = replace(settings, training=replace(settings.training, minutes=minutes))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trained = in_time(changed, learner, tmp_path, resume=True)
    assert trained.settled.training.epochs == epochs and trained.settled.training.minutes == 0
    assert trained.verdict == says
    assert [str(one.message) for one in told if "limit" in str(one.message)] == (
        [f"{tmp_path}: {says}; its recipe will not repeat the run to the bit"] if says else []
    )
    if minutes > 1:
        assert learner.clock.now <= 60 * minutes
    if not says:
        whole = train(trained.settled, columns(), SHAPE, Session(tmp_path / "again", "x"))
        for name, value in whole.prior.machine.parameters.items():
            assert torch.equal(value, trained.prior.machine.parameters[name]), name


@pytest.mark.usefixtures("same_learner", "quick_disk")
def test_row59_a_limit_that_is_lifted_leaves_the_epochs_of_the_recipe(tmp_path: Path) -> None:
    settings, learner = timed(minutes=0.5, epochs=9)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(2))
    lifted = replace(settings, training=replace(settings.training, minutes=0.0))
    with pytest.warns(UserWarning, match="another limit of time made 5 epochs 9"):
        trained = in_time(lifted, learner, tmp_path, resume=True)
    assert trained.settled.training.epochs == 9
    # What has ended has ended.
    with pytest.warns(UserWarning, match="training has ended, which no other limit changes; give another --run"):
        again = in_time(settings, learner, tmp_path, resume=True)
    assert again.settled.training.epochs == 9


GROWN: dict[str, Any] = {
    "growth": {"samples": 100, "bias_steps": 1, "units": 2},
    "training": {"epochs": 2},
    "inference": {"modes": 0, "starts": 1},
}


def test_row59_growth_goes_on_under_another_limit_and_units_that_were_filled_up_stay(tmp_path: Path) -> None:
    """The plan of a limit says how many units there are at least; those that are trained already are not grown anew."""

    def planned(minutes: float) -> Any:
        # So little time that it decides; growth ends by its limit of units.
        made = lesson(hidden="auto", epochs=None, minutes=minutes, tables=GROWN)
        filled = {"filled": 3 + round(10 * minutes)}
        assert made.tables is not None
        tables = {**made.tables, "prior": {**made.tables["prior"], **filled}}
        return replace(made, recipe=replace(made.recipe, prior=replace(made.recipe.prior, **filled)), tables=tables)

    with pytest.raises(Stopped):
        learn(planned(0.5), Session(tmp_path, watch=interrupted(1)), device=CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learnt = learn(planned(0.6), Session(tmp_path, resume=True), device=CPU)
    assert learnt.trained.prior.description.hidden == 8
    assert read_recipe(tmp_path / "recipe.toml").prior.filled == 8


def test_row59_what_may_not_change_is_said_with_the_reason(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch)
    capsys.readouterr()
    assert run(*(6 if word == 5 else word for word in WORDS), "--resume") == 7
    said = capsys.readouterr().err
    assert "cannot resume: recipe.prior.hidden was 5 and is 6; what it has learnt so far rests on that" in said
