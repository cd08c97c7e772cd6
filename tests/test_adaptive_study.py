"""The study of learning by adaptive TAP: its table and figure, and the command on generated images."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from restore.evaluation import adaptive_study as study
from restore.evaluation.adaptive_study import Curve, Point, measured_epochs
from restore.learning.recipe import read_recipe
from restore.learning.tap_likelihood import TAPLikelihood

TRAINING = Path(__file__).parents[1] / "training" / "adaptive"

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def without_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is restored here, so that no prior needs a graph, which takes longest to make."""
    monkeypatch.setitem(sys.modules, "restore.export.packing", None)


def curve(method: str, iterations: int, rate: float, *pseudo: float) -> Curve:
    lawless = None if method == "tap" else 0.25
    points = tuple(Point(epoch, epoch / 60, value, 1e-3, lawless) for epoch, value in enumerate(pseudo, 1))
    return Curve(f"{method}-{iterations}", "digest", method, iterations, rate, 3, points)


CURVES = [
    curve("adaptive_tap", 10, 0.1, -20.0, -15.0),
    curve("tap", 10, 0.1, -20.0, -15.5, -12.25),
    curve("tap", 3, 0.1, -20.0, -15.5, -12.5),
    curve("tap", 3, 0.01, -22.0, -21.0, -20.5),
]


def test_the_recipes_differ_in_nothing_but_what_is_compared() -> None:
    plans = [read_recipe(path) for path in sorted(TRAINING.glob("adaptive-*.toml"))]
    assert len(plans) == 10
    every = {(method, count) for method in study.METHODS for count in (3, 10, 100)}
    # At the slow rate the longer ones by adaptive TAP would take hours.
    for rate, epochs, left_out in ((0.001, 50, {("adaptive_tap", 10), ("adaptive_tap", 100)}), (0.005, 15, set())):
        group = [plan for plan in plans if plan.optimizer.rate == rate]
        assert {(plan.learner.fixed_point, plan.learner.iterations) for plan in group} == every - left_out
        common = replace(group[0], name="x", learner=TAPLikelihood())
        for plan in group:
            assert replace(plan, name="x", learner=TAPLikelihood()) == common
            assert replace(plan.learner, fixed_point="tap", iterations=3) == TAPLikelihood(tol=1e-6, damping=0.5)
        assert (common.training.epochs, common.data.count) == (epochs, 5000)


@pytest.mark.parametrize(
    ("epochs", "measured"),
    [(1, [1]), (15, [*range(1, 16)]), (50, [*range(5, 51, 5)]), (25, [*range(2, 25, 2)])],
)
def test_measured_epochs(epochs: int, measured: list[int]) -> None:
    assert list(measured_epochs(epochs)) == measured


def test_the_tables_and_the_figure(tmp_path: Path) -> None:
    slow, fast = study.as_tables(CURVES).split("\n\nRate 0.1:\n\n")
    assert slow.startswith("Rate 0.01:\n\n| strategy | after 1 epochs | after 2 epochs | after 3 epochs |")
    assert fast.splitlines()[2:] == [
        "| TAP, 3 iterations | -20.00 | -15.50 | -12.50 | 3 | -12.50 | 1.0 | 1.0e-03 |  |",
        "| TAP, 10 iterations | -20.00 | -15.50 | -12.25 | 3 | -12.25 | 1.0 | 1.0e-03 |  |",
        "| adaptive TAP, 10 iterations | -20.00 | -15.00 | - | 2 | -15.00 | 1.0 | 1.0e-03 | 25.0 |",
    ]
    study.as_figure(CURVES, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_a_record_reads_back() -> None:
    assert [study.read(json.loads(json.dumps(asdict(each)))) for each in CURVES] == CURVES


RECIPE = """
name = "NAME"
storage = "float32"
[data]
source = "bars-and-stripes"
[prior]
hidden = 4
weight_scale = 0.1
[learner]
method = "tap"
iterations = 2
damping = 0.5
LEARNER
[training]
epochs = 3
batch = 10
[inference]
modes = 0
starts = 1
"""


def test_the_command_trains_and_measures_what_is_missing(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, runs, path = tmp_path / "out", tmp_path / "runs", tmp_path / "out" / "adaptive.json"
    output.mkdir()
    (output / "README.md").write_text("before\n<!-- adaptive: begin -->\nold\n<!-- adaptive: end -->\nafter\n")
    for name, learner in (("adaptive-tap-2", ""), ("adaptive-adatap-2", 'fixed_point = "adaptive_tap"')):
        (output / f"{name}.toml").write_text(RECIPE.replace("NAME", name).replace("LEARNER", learner))
    command = ["study", "adaptive", "-o", output, "--runs", runs, "--device", "cpu"]
    assert run(*command) == 3
    assert "give --train" in capsys.readouterr().err
    assert run(*command, "--train") == 0

    def curves() -> dict[str, Curve]:
        return {each["name"]: study.read(each) for each in json.loads(path.read_text())["curves"]}

    found = curves()
    assert {each.method for each in found.values()} == set(study.METHODS)
    for each in found.values():
        assert [point.epoch for point in each.points] == [1, 2, 3]
        assert all(point.pseudo < 0 and point.minutes > 0 and point.unsettled > 0 for point in each.points)
        assert all((point.lawless is None) == (each.method == "tap") for point in each.points)
    readme = (output / "README.md").read_text()
    assert readme.startswith("before") and "old" not in readme and "adaptive TAP, 2 iterations" in readme
    # A run that was stopped counts as far as it got, and is measured on from there.
    parked = shutil.move(runs / "adaptive-tap-2" / "epochs" / "0003", tmp_path / "0003")
    path.unlink()
    assert run(*command) == 0
    assert [point.epoch for point in curves()["adaptive-tap-2"].points] == [1, 2]
    shutil.move(parked, runs / "adaptive-tap-2" / "epochs" / "0003")
    assert run(*command) == 0
    assert curves() == found
    # What was measured is not measured again, nor trained again where the runs are gone.
    monkeypatch.setattr(study, "pseudo_likelihood_of", lambda *_: pytest.fail("measured again"))
    shutil.rmtree(runs)
    assert run(*command, "--train") == 0
    assert (curves(), (output / "README.md").read_text()) == (found, readme)


def test_the_runs_of_another_recipe_are_not_taken_for_those_of_this_one(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "adaptive-tap-2.toml"
    text = RECIPE.replace("NAME", "adaptive-tap-2").replace("LEARNER", "")
    recipe.write_text(text)
    command = ["study", "adaptive", "-o", tmp_path, "--runs", tmp_path / "runs", "--device", "cpu"]
    assert run(*command, "--train") == 0
    recipe.write_text(text.replace("damping = 0.5", "damping = 0.4"))
    capsys.readouterr()
    assert run(*command) == 3
    assert "holds a run of another recipe; remove it, or give another --runs" in capsys.readouterr().err
