"""The report on a prior: is it worth using, and what does the picture show?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from lessons import CPU, Hands, bars, learn, lesson
from machines import seeded
from PIL import Image

import restore
from restore import zoo
from restore.channels import BitFlip, Damage, parse_task
from restore.errors import OutputError
from restore.evaluation.baselines import Median
from restore.evaluation.evaluate import Report, evaluate
from restore.learning.lesson import Lesson, lesson_of
from restore.learning.options import TrainOptions
from restore.learning.run.report import verdict, write_report
from restore.learning.run.session import Clock, Session
from restore.learning.train import train_and_save

IMAGES = (torch.rand(20, 16, generator=seeded(0)) < 0.5).float()


def scores(task: str, images: torch.Tensor = IMAGES, **shares: float) -> dict[str, Report]:
    """Of restorers that leave about so much wrong of images of noise."""

    def restorer(share: float) -> Any:
        wrong = torch.rand(images.shape, generator=seeded(1)) < share
        return lambda observed, channel, shape: torch.where(wrong, 1 - images, images)

    return {
        name: evaluate(restorer(share), [images.reshape(-1, 4, 4)], parse_task(task), seeded(2))
        for name, share in shares.items()
    }


def pixels_of(made: Lesson) -> tuple[torch.Tensor, torch.Tensor]:
    held_out = made.held_out_pixels(CPU)
    assert held_out is not None
    return made.pixels(CPU), held_out


def test_images_are_varied_once_however_much_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, times = lesson(), list[int]()
    monkeypatch.setattr("restore.learning.lesson.varied", lambda images, **how: times.append(1) or images)
    monkeypatch.setattr("restore.learning.train.add_graph", lambda *folders: "")
    train_and_save(made, Session(tmp_path, lasting=True), CPU)
    assert len(times) == 1 and (tmp_path / "report.json").exists()


def test_a_prior_is_told_beside_the_best_filter() -> None:
    found = {
        "flip:0.1": scores("flip:0.1", mine=0.0, other=0.2, median=0.4),
        "flip:0.2": scores("flip:0.2", mine=0.1, other=0.5, median=0.3),
    }
    said = verdict("mine", found)
    assert "in part" not in said and "not" not in said
    for task, rival in (("flip:0.1", "other"), ("flip:0.2", "median")):
        assert f"{task} {found[task]['mine'].error_all.mean:.2%} wrong, {rival} " in said
        assert f"{rival} {found[task][rival].error_all.mean:.2%} wrong" in said
    behind = {"flip:0.1": scores("flip:0.1", mine=0.4, median=0.1)}
    assert "not worth" in verdict("mine", behind) and "in part" in verdict(
        "mine", behind | {"flip:0.2": found["flip:0.2"]}
    )
    # A tie is not ahead.
    assert "not worth" in verdict("mine", {"flip:0.1": scores("flip:0.1", mine=0.0, median=0.0)})
    assert verdict("mine", {}) == ""


def test_the_scores_are_those_of_a_filter_made_by_hand(tmp_path: Path) -> None:
    made = lesson_of([*bars(120)], TrainOptions(name="parts", epochs=1, held_out=0.3))
    trained = learn(made, Session(tmp_path))
    lines, _ = write_report(tmp_path, trained, pixels_of(made), CPU, Clock())
    record = json.loads((tmp_path / "report.json").read_text())
    truth = made.held_out_pixels(CPU)
    assert truth is not None and list(record["scores"]) == ["flip:0.1", "flip:0.2"] and record["verdict"] in lines[0]
    observed = BitFlip(0.1).corrupt(truth, torch.Generator().manual_seed(0))
    median = Median((5, 6), 3).restore(observed, Damage(0.1)) > 0.5
    for name, restored in (("nothing", observed), ("median 3x3", median)):
        found = record["scores"]["flip:0.1"][name]["error_all"]["mean"]
        assert found == pytest.approx(float((restored != truth).double().mean()))
    # Without time nothing is scored or drawn.
    late = Clock(80.0, spent=79.0, now=Hands(0.0))
    (tmp_path / "late").mkdir()
    write_report(tmp_path / "late", trained, pixels_of(made), CPU, late)
    assert not json.loads((tmp_path / "late" / "report.json").read_text())["scores"]
    assert [path.name for path in (tmp_path / "late").iterdir()] == ["report.json"]


TRAININGS: dict[str, tuple[Callable[[], np.ndarray], tuple[object, ...], str]] = {
    "convolutional": (bars, (), "flip:0.1"),
    "binary": (bars, ("--hidden", 9), "flip:0.1"),
    "in-closed-form": (
        lambda: np.random.default_rng(1).integers(0, 256, (60, 5, 6)).astype(np.uint8),
        ("--method", "principal", "--hidden", 2),
        "noise:0.1",
    ),
    "conditional": (bars, ("--task", "flip:0.1"), "flip:0.1"),
    "in-rounds": (bars, ("--method", "fw", "--hidden", 2), "flip:0.1"),
    "without-hidden-units": (bars, ("--method", "fvbm"), "flip:0.1"),
}


@pytest.mark.parametrize(("images", "options", "task"), TRAININGS.values(), ids=TRAININGS.keys())
def test_the_command_leaves_a_picture_scores_and_a_few_lines(
    images: Callable[[], np.ndarray],
    options: tuple[object, ...],
    task: str,
    home: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    np.save("images.npy", images())
    short = () if "--method" in options else ("--epochs", 2)
    assert run("train", "images.npy", "--name", "parts", *short, *options) == 0
    said = capsys.readouterr().err
    record = json.loads(Path("runs/parts/report.json").read_text(encoding="utf-8"))
    assert record["name"] == "parts" and task in record["scores"] and record["verdict"] in said
    assert "median 3x3" in record["scores"][task] and "parts" in record["scores"][task]
    with Image.open("runs/parts/report.png") as picture:
        assert picture.format == "PNG" and min(picture.size) > 500
    assert len(said[said.index("trained in") :].splitlines()) <= 6


@pytest.mark.parametrize("worth", [True, False])
def test_auto_leaves_out_what_is_not_worth_using(
    worth: bool, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("restore.learning.run.report.ahead", lambda *scored: worth)
    assert run("train", "images", "--name", "parts", "--epochs", 1) == 0
    assert ("not worth using" in capsys.readouterr().err) != worth
    for folder in (Path("runs/parts"), zoo.find("parts")):
        assert zoo.describe(folder).auto == int(worth)
        assert restore.load(folder, engine="torch").description.name == "parts"
    considered = zoo.candidates((5, 6))
    # It is one of those that are considered, and takes nobody's place.
    assert set(considered) - {"parts"} == set(zoo.candidates((6, 5))) - {"parts"} and ("parts" in considered) == worth


def test_without_images_held_out_there_are_no_scores(home: Path, run: Run) -> None:
    np.save("bars.npy", bars())
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "bars.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 2\nbatch = 10\n",
        encoding="utf-8",
    )
    assert run("train", "mine.toml", "--quiet", "-o", "a folder") == 0
    record = json.loads(Path("runs/mine/report.json").read_text(encoding="utf-8"))
    assert (record["scores"], record["verdict"]) == ({}, "")
    assert not zoo.describe(Path("a folder")).unfinished


def test_a_report_that_cannot_be_made_loses_no_prior(
    home: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OutputError(f"{path}: cannot be written (no space)")

    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("restore.learning.run.report.write_atomically", full)
    monkeypatch.setattr("restore.learning.run.report.evaluate", broken)
    np.save("bars.npy", bars())
    assert run("train", "bars.npy", "--name", "parts", "--epochs", 1) == 0
    said = capsys.readouterr().err
    assert "out of memory" in said
    assert zoo.describe(zoo.find("parts")).name == "parts" and not list(Path("runs/parts").glob("report.*"))
