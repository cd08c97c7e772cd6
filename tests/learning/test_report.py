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
from lessons import CPU, bars, lesson
from machines import seeded
from PIL import Image
from timed_runs import Hands

import restore
from restore import zoo
from restore.channels import BitFlip, parse_task
from restore.data import Wanted
from restore.errors import OutputError
from restore.evaluation.baselines import Median
from restore.evaluation.evaluate import Report, evaluate
from restore.learning.lesson import planned_lesson
from restore.learning.recipe.plan import Wishes
from restore.learning.run.report import Drawer, judged, strongest, verdict
from restore.learning.run.session import Clock, Passed, Session
from restore.learning.train import learn

IMAGES = (torch.rand(20, 16, generator=seeded(0)) < 0.5).float()


def scores(task: str, images: torch.Tensor = IMAGES, **shares: float) -> dict[str, Report]:
    """Of restorers that leave about so much wrong of images of noise."""

    def restorer(share: float) -> Any:
        wrong = torch.rand(images.shape, generator=seeded(1)) < share
        return lambda observed, channel: torch.where(wrong, 1 - images, images)

    return {
        name: evaluate(restorer(share), images, parse_task(task), (4, 4), seeded(2)) for name, share in shares.items()
    }


@pytest.mark.parametrize(
    ("second", "worth", "words"),
    [(0.0, 0.5, "worth using in part: "), (0.5, 0.0, "not worth using yet: ")],
    ids=["in part", "not yet"],
)
def test_where_a_prior_is_behind_the_remedy_is_told(second: float, worth: float, words: str) -> None:
    found = {
        "flip:0.1": scores("flip:0.1", mine=0.4, median=0.1),
        "flip:0.2": scores("flip:0.2", mine=second, median=0.2),
    }
    made = verdict("mine", found, "more images")
    assert made.worth == worth and made.said.startswith(words) and made.said.endswith("more images")


def test_a_prior_ahead_everywhere_is_worth_using_and_told_beside_the_best_filter() -> None:
    found = {
        "flip:0.1": scores("flip:0.1", mine=0.0, other=0.2, median=0.4),
        "flip:0.2": scores("flip:0.2", mine=0.1, other=0.5, median=0.3),
    }
    made = verdict("mine", found, "more images")
    assert made.worth == 1 and "more images" not in made.said
    for task, rival in (("flip:0.1", "other"), ("flip:0.2", "median")):
        assert f"after {task} {found[task]['mine'].error_all.mean:.2%} wrong, {rival} " in made.said
        assert f"{rival} {found[task][rival].error_all.mean:.2%} wrong" in made.said


def test_a_tie_is_not_ahead_and_few_images_give_no_verdict() -> None:
    assert verdict("mine", {"flip:0.1": scores("flip:0.1", mine=0.0, median=0.0)}, "time").worth == 0
    assert verdict("mine", {"flip:0.1": scores("flip:0.1", IMAGES[:9], mine=0.0, median=0.9)}, "time").worth is None


def test_the_scores_are_those_of_a_filter_made_by_hand(tmp_path: Path) -> None:
    made = planned_lesson([*bars(120)], "parts", Wishes(epochs=1), shown_as="bars", wanted=Wanted(held_out=0.3))
    learnt = learn(made, Session(tmp_path), device=CPU)
    found = judged(learnt, Clock())
    truth = made.held_out_pixels(CPU)
    assert truth is not None and list(found.scores) == ["flip:0.1", "flip:0.2"]
    observed = BitFlip(0.1).corrupt(truth, torch.Generator().manual_seed(0))
    median = Median((5, 6), 3).restore(observed, BitFlip(0.1)) > 0.5
    for name, restored in (("nothing", observed), ("median 3x3", median)):
        assert found.scores["flip:0.1"][name].error_all.mean == pytest.approx(
            float((restored != truth).double().mean())
        )
    # Without time nothing is scored.
    late = Clock(80.0, now=Hands(0.0))
    late.spent = 79.0
    assert not judged(learnt, late).scores


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
    record = json.loads(Path("runs/parts/report.json").read_text())
    assert record["name"] == "parts" and task in record["scores"] and record["verdict"] in said
    assert "median 3x3" in record["scores"][task] and "parts" in record["scores"][task]
    with Image.open("runs/parts/report.png") as picture:
        assert picture.format == "PNG" and min(picture.size) > 500
    assert len(said[said.index("trained in") :].splitlines()) <= 6


def test_a_prior_behind_filters_says_so_in_its_header(home: Path, run: Run) -> None:
    noise = np.random.default_rng(0).integers(0, 2, (200, 6, 6)).astype(np.uint8) * np.uint8(255)
    blocks = np.kron(noise[:, :2, :2], np.ones((3, 3), np.uint8))
    np.save("images.npy", blocks)
    words = ("train", "images.npy", "--name", "parts", "--hidden", 1, "--quiet", "--overwrite")
    assert run(*words, "--epochs", 1) == 0
    assert zoo.describe(zoo.find("parts")).unfinished == zoo.describe(Path("runs/parts")).unfinished != ""
    assert json.loads(Path("runs/parts/report.json").read_text())["worth"] == 0
    # It is no other run's, and gives way to what comes next of its own.
    assert run(*words, "--epochs", 1, "--resume") == 0


def test_without_images_held_out_there_are_no_scores(home: Path, run: Run) -> None:
    np.save("bars.npy", bars())
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "bars.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 2\nbatch = 10\n"
    )
    assert run("train", "mine.toml", "--quiet", "-o", "a folder") == 0
    record = json.loads(Path("runs/mine/report.json").read_text())
    assert (record["scores"], record["verdict"], record["worth"]) == ({}, "", None)
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
    assert "report.json" in said and "out of memory" in said
    assert zoo.describe(zoo.find("parts")).name == "parts" and not list(Path("runs/parts").glob("report.*"))


def test_python_leaves_the_same_in_the_folder_of_a_run(home: Path) -> None:
    asked: dict[str, Any] = {"name": "parts", "hidden": 3, "epochs": 2}
    restore.train(list(bars()), **asked, run="mine")
    assert json.loads(Path("mine/report.json").read_text())["scores"]
    restore.train(list(bars()), **asked)
    assert [path.name for path in home.iterdir() if path.name not in ("images", "data")] == ["mine"]


# --- the picture ---


def test_pictures_take_no_more_than_their_share_and_change_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, hands = lesson(), Hands()
    drawer = Drawer(made, tmp_path, CPU, Clock(100.0, now=hands), possible=True)
    drawn = []

    def write(*arguments: object) -> None:
        drawn.append(hands.now)
        hands.now += 1.0

    monkeypatch.setattr(Drawer, "_write", write)
    for moment in (0.0, 1.0, 50.0, 51.5, 60.0):
        hands.now = moment
        drawer.draw(None)  # type: ignore[arg-type]
    # It takes a second, and then has to wait for fifty.
    assert drawn == [0.0, 51.5]
    for moment in (80.0, 86.0):
        hands.now = moment
        drawer.draw(None, last=True)  # type: ignore[arg-type]
    # The last one is not begun late in the time after learning.
    assert drawn == [0.0, 51.5, 80.0]


def test_a_picture_changes_no_bit_of_the_prior(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    def learnt(folder: str, *, draw: bool) -> dict[str, torch.Tensor]:
        made = lesson(method="pcd")
        drawer = Drawer(made, tmp_path / folder, CPU, Clock())

        def usable(passed: Passed) -> None:
            if draw:
                drawer.draw(passed.machine)

        trained = learn(made, Session(tmp_path / folder, usable=usable), device=CPU).trained
        return dict(trained.prior.machine.parameters)

    alone, drawn = learnt("one", draw=False), learnt("two", draw=True)
    assert (tmp_path / "two" / "report.png").exists()
    assert all(torch.equal(alone[name], drawn[name]) for name in alone)


def test_the_strongest_features_come_first_on_their_own_scale() -> None:
    from priors import random_prior

    prior = random_prior((3, 4), hidden=5)
    found = strongest(prior, 3)
    weights = prior.machine.parameters["weights.0"]
    first = weights[:, int(weights.norm(dim=0).argmax())]
    assert found.shape == (3, 3, 4) and np.abs(found - 0.5).max(axis=(1, 2)) == pytest.approx([0.5] * 3)
    np.testing.assert_allclose(found[0].ravel(), 0.5 + (first / first.abs().max()).numpy() / 2, rtol=1e-6)
