"""The study of learning by adaptive TAP: its table and figure, and the command on generated images."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import adaptive as study
import pytest
from adaptive import Curve, Point, measured_epochs
from harness import TRAINING, Asked, parsed

from restore.errors import InputError
from restore.learning.recipe.recipe import read_recipe
from restore.learning.rules.tap_likelihood import TAPLikelihood

pytest.importorskip("matplotlib")


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
    plans = [read_recipe(path) for path in sorted((TRAINING / "recipes" / "adaptive").glob("adaptive-*.toml"))]
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


def test_the_tables() -> None:
    slow, fast = study.as_tables(CURVES).split("\n\nRate 0.1:\n\n")
    assert slow.startswith("Rate 0.01:\n\n| strategy | after 1 epochs | after 2 epochs | after 3 epochs |")
    assert fast.splitlines()[2:] == [
        "| TAP, 3 iterations | -20.00 | -15.50 | -12.50 | 3 | -12.50 | 1.0 | 1.0e-03 |  |",
        "| TAP, 10 iterations | -20.00 | -15.50 | -12.25 | 3 | -12.25 | 1.0 | 1.0e-03 |  |",
        "| adaptive TAP, 10 iterations | -20.00 | -15.00 | - | 2 | -15.00 | 1.0 | 1.0e-03 | 25.0 |",
    ]


def test_a_record_reads_back() -> None:
    assert [parsed(Curve, json.loads(json.dumps(asdict(each)))) for each in CURVES] == CURVES


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


def laid_out(root: Path, **learners: str) -> Asked:
    """A folder with recipes of these learners, and a document with room for the table."""
    (root / "recipes").mkdir()
    (root / "log.md").write_text("before\n<!-- adaptive: begin -->\nold\n<!-- adaptive: end -->\nafter\n")
    for name, learner in learners.items():
        name = f"adaptive-{name}-2"
        (root / "recipes" / f"{name}.toml").write_text(RECIPE.replace("NAME", name).replace("LEARNER", learner))
    return Asked(root, runs=root / "runs", device="cpu")


@pytest.mark.thorough
def test_what_is_missing_is_trained_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = laid_out(tmp_path, tap="", adatap='fixed_point = "adaptive_tap"')
    training, path = replace(asked, train_missing=True), asked.records / "adaptive.json"
    with pytest.raises(InputError, match="give --train"):
        study.study(asked)
    study.study(training)

    def curves() -> dict[str, Curve]:
        return {each["name"]: parsed(Curve, each) for each in json.loads(path.read_text())["curves"]}

    found = curves()
    assert {each.method for each in found.values()} == set(study.METHODS)
    for each in found.values():
        assert [point.epoch for point in each.points] == [1, 2, 3]
        assert all(point.pseudo < 0 and point.minutes > 0 and point.unsettled > 0 for point in each.points)
        assert all((point.lawless is None) == (each.method == "tap") for point in each.points)
    readme = (asked.root / "log.md").read_text()
    assert readme.startswith("before") and "old" not in readme and "adaptive TAP, 2 iterations" in readme
    # The figure is drawn once; its pixels take most of the time.
    tables: list[dict[str, str]] = []
    monkeypatch.setattr(study, "publish", lambda asked, told, figures: tables.append(told))
    # A run that was stopped counts as far as it got, and is measured on from there.
    epochs = asked.runs / "adaptive-tap-2" / "epochs"
    parked = shutil.move(epochs / "0003", tmp_path / "0003")
    path.unlink()
    study.study(asked)
    assert [point.epoch for point in curves()["adaptive-tap-2"].points] == [1, 2]
    shutil.move(parked, epochs / "0003")
    study.study(asked)
    assert curves() == found
    # What was measured is not measured again, nor trained again where the runs are gone.
    monkeypatch.setattr(study, "pseudo_likelihood_of", lambda *_: pytest.fail("measured again"))
    shutil.rmtree(asked.runs)
    study.study(training)
    assert curves() == found and tables[-1]["adaptive"] in readme


def test_the_runs_of_another_recipe_are_not_taken_for_those_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "publish", lambda *_: None)
    asked = laid_out(tmp_path, tap="")
    study.study(replace(asked, train_missing=True))
    recipe = asked.recipes / "adaptive-tap-2.toml"
    recipe.write_text(recipe.read_text().replace("damping = 0.5", "damping = 0.4"))
    with pytest.raises(InputError, match="holds a run of another recipe; remove it, or give another --runs"):
        study.study(asked)
