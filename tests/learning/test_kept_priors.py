"""A prior is kept as it is learnt: a whole one is left however the run ends, from its first checkpoint on."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Run
from lessons import CPU, SHAPE, SHORT, Hands, bars, bits, columns, learn, lesson
from refusals import refused

import restore
from restore import zoo
from restore.errors import OutputError, TrainingError
from restore.export import packing
from restore.export.beside import add_graph
from restore.learning.recipe.recipe import parse
from restore.learning.run.place import reserve
from restore.learning.run.session import Clock, Progress, Session
from restore.learning.train import train, train_and_save
from restore.zoo import TrainedPrior
from restore.zoo.made import made_here

WORDS = ("train", "images", "--name", "parts", "--hidden", 5, "--epochs", 4, "--quiet")


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
    packing.beside_weights = lambda folder: b""
    torch.set_num_threads(1)
    learn(lesson(tables=QUICK), Session(folder / "run", target=folder / "named", lasting=True))


def killed_at_each(folder: Path) -> None:
    for write in WRITES:
        process = os.fork()
        if not process:
            killed_at(write, folder / str(write))
            os._exit(1)
        assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL


# Three in the run's folder, the last one there, and that under the name.
WRITES = range(5)

# Not judged, so that every epoch leaves a prior.
QUICK = {"training": {"watch": "", "watch_every": 1, "checkpoint_every": 1}, "inference": {"modes": 0, "starts": 1}}


@pytest.mark.thorough
@pytest.mark.usefixtures("without_graph")
def test_killed_at_any_write_of_the_prior_a_whole_one_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever its age, a temporary file is of a killed process here.
    monkeypatch.setattr("restore.files.ABANDONED", -1.0)
    # One process has to load torch; those that are killed are its forks.
    process = multiprocessing.get_context("forkserver").Process(target=killed_at_each, args=(tmp_path,), daemon=True)
    process.start()
    process.join(timeout=300)
    assert process.exitcode == 0
    for write in WRITES:
        folder = tmp_path / str(write)
        if write:
            header = zoo.load(folder / "run").description
            assert bool(header.unfinished) == (write < 4)
        assert not (folder / "named" / zoo.WEIGHTS).exists()
        # The next sitting sweeps up what was not finished.
        assert len(list(folder.rglob(".restore-*"))) == 1
        session = Session(folder / "run", resume=True, target=folder / "named", lasting=True)
        learnt = learn(lesson(tables=QUICK), session)
        assert not list((folder / "run").rglob(".restore-*"))
    whole = learn(lesson(tables=QUICK), Session(tmp_path / "whole"))
    for name, value in whole.prior.machine.parameters.items():
        assert torch.equal(value, learnt.prior.machine.parameters[name]), name


def test_a_disk_that_is_full_later_leaves_the_prior_that_was_there(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:

        def full(passed: Any) -> None:
            if passed.done == 2:
                patched.setattr(os, "fsync", refuse)

        patched.setattr("restore.learning.train.watcher", lambda *header: full)
        assert run(*WORDS) == 7
    assert zoo.load(Path("runs/parts")).description.unfinished.startswith("epoch 1 of at most 4, ")
    assert run(*WORDS, "--resume") == 0


def test_a_folder_made_for_a_prior_that_cannot_be_written_is_removed(tmp_path: Path) -> None:
    made = lesson(tables=QUICK, epochs=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("restore.zoo.store.write_atomically", full)
        with refused(TrainingError, tmp_path / "named"):
            learn(made, Session(tmp_path / "run", target=tmp_path / "named"))
    assert not (tmp_path / "named").exists()


def full(path: Path, content: bytes, error: type[Exception]) -> None:
    raise error(f"{path}: no space")


def test_a_graph_that_cannot_be_made_is_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / zoo.WEIGHTS).write_bytes(b"damaged")
    assert zoo.WEIGHTS in add_graph([tmp_path], TrainingError) and not (tmp_path / zoo.GRAPH).exists()


class Ticking(Hands):
    """A clock on which every look takes a tenth of a second."""

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


def test_the_graph_is_made_whatever_the_time_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    hands = Ticking()

    def slow(folder: Path) -> bytes:
        hands.now += 100
        return b"a graph"

    monkeypatch.setattr("restore.export.packing.beside_weights", slow)
    named = zoo.user_folder() / "named"
    session = Session(tmp_path / "run", lasting=True, target=named, clock=Clock(now=hands))
    made = lesson(tables=QUICK, epochs=None, minutes=0.5)
    line = train_and_save(made, session, CPU, report=False).lines[-1]
    assert (tmp_path / "run" / zoo.GRAPH).read_bytes() == b"a graph" and made_here(named)
    taken, over = map(int, re.findall(r"(\d+) s", line))
    # The limit of half a minute left some seconds when the graph was begun.
    assert 100 <= taken <= 101 and taken - 30 < over < taken


# --- by its folder ---


def stopped(run: Run, monkeypatch: pytest.MonkeyPatch, *words: object, number: int = signal.SIGINT) -> None:
    """A run that is stopped after its second epoch."""

    def watch(passed: Any) -> None:
        if passed.done == 2 and not passed.stage:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patched:
        patched.setattr("restore.learning.train.watcher", lambda *header: watch)
        assert run(*(words or WORDS)) == 128 + number


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_restores_by_its_folder_and_goes_on(
    number: int, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(run, monkeypatch, number=number)
    said = capsys.readouterr().err
    header = zoo.describe(Path("runs/parts"))
    command = "restore train images --name parts --hidden 5 --epochs 4 --quiet --resume"
    assert command in said and header.unfinished in said and "runs/parts" in said
    assert header.name == "parts" and header.run == str(home / "runs" / "parts")
    words = ("denoise", "images/000.png", "--model", "runs/parts", "--p", 0.1, "--engine", "torch")
    assert run(*words, "-o", "clean.png") == 0
    assert run("info", "runs/parts") == 0 and header.unfinished in capsys.readouterr().out
    assert run(*WORDS, "--resume") == 0
    header = zoo.describe(zoo.find("parts"))
    assert (header.unfinished, header.run) == ("", "") and zoo.describe(Path("runs/parts")) == header
    assert run(*(word if word != "parts" else "whole" for word in WORDS)) == 0
    assert bits("parts") == bits("whole")


def test_a_finished_prior_stays_until_another_is_finished_too(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("train", "images", "--name", "parts", "--hidden", 3, *SHORT) == 0
    before = bits("parts")
    shutil.rmtree("runs")
    assert run(*WORDS) == 5 and not Path("runs").exists()
    stopped(run, monkeypatch, *WORDS, "--overwrite")
    assert bits("parts") == before
    # Whoever goes on says so again.
    assert run(*WORDS, "--resume") == 5
    assert run(*WORDS, "--resume", "--overwrite") == 0
    assert bits("parts") == bits("runs/parts") != before
    # It is its own now.
    assert run(*WORDS, "--resume") == 0


def test_a_name_that_is_taken_while_a_run_goes_on_is_not_taken_from_its_owner(home: Path) -> None:
    target = reserve("parts", None, overwrite=False, run=Path("runs/parts"))
    learn(lesson(epochs=1), Session(Path("other"), target=target, lasting=True))
    before = (target / zoo.WEIGHTS).read_bytes()
    with refused(OutputError, target, "overwrite"):
        learn(lesson(hidden=4), Session(Path("runs/parts"), target=target, lasting=True))
    assert (target / zoo.WEIGHTS).read_bytes() == before
    assert zoo.describe(Path("runs/parts")).hidden == 4


def test_python_says_how_to_go_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"name": "mine", "hidden": 5, "epochs": 3, "run": "here", "keep": True}
    with monkeypatch.context() as patched:
        patched.setattr("restore.learning.train.keep", lambda *more: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as caught:
            restore.train(list(bars()), **asked)
    (note,) = caught.value.__notes__
    assert "run='here', resume=True" in note and "here" in note
    assert restore.load("here", engine="torch").description.unfinished.startswith("epoch ")


# --- from when on ---


KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "judged": ({}, ["epoch 1 of at most 2, "]),
    "not judged": (
        {"training": {"watch": ""}},
        ["epoch 1 of at most 2, not judged", "epoch 2 of at most 2, not judged"],
    ),
    "frank-wolfe": (
        {"learner": {"method": "frank_wolfe", "penalty": 0.001}, "prior": {"hidden": 2}},
        ["round 1 of at most 2", "round 2 of at most 2"],
    ),
    "grown": (
        {"prior": {"hidden": "auto"}, "growth": {"penalty": 0.001, "units": 2}},
        ["growing, round 1 of at most 2", "growing, round 2 of at most 2", "epoch 1 of at most 2, "],
    ),
    "grown-conditional": (
        {
            "data": {"source": "bars", "validation": 20, "task": "flip:0.1"},
            "prior": {"hidden": "auto", "family": "crbm"},
            "growth": {"penalty": 0.001, "units": 2},
            "learner": {"method": "mean_field", "iterations": 3},
            "training": {"watch": ""},
            "inference": None,
        },
        ["epoch 1 of at most 2, "],
    ),
    "deep": (
        {"prior": {"family": "deep", "hidden": 4, "deeper": [3]}, "pretraining": {"epochs": 1}},
        ["epoch 1 of at most 2, "],
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


@pytest.mark.usefixtures("quick_disk", "quick_growth")
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

    def use(prior: TrainedPrior, passed: Progress) -> None:
        zoo.save(tmp_path / "p", prior, "")
        loaded = zoo.load(tmp_path / "p")
        assert loaded.description.run == str(tmp_path / "run") and not len(loaded.modes)
        seen.append((loaded.description.unfinished, passed.seconds))

    train(settings, columns(), SHAPE, Session(tmp_path / "run", "x"), better=use)
    assert [said[: len(start)] for (said, _), start in zip(seen, first, strict=False)] == first
    assert [seconds for _, seconds in seen] == sorted(seconds for _, seconds in seen)
