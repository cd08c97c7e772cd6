"""The study of learning by adaptive TAP: its table and figure, and the command on generated images."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import adaptive as study
import pytest
from adaptive import Curve, measured_epochs
from harness import Asked

from restore.errors import InputError
from restore.zoo.structure import structure

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("epochs", "measured"),
    [(1, [1]), (15, [*range(1, 16)]), (50, [*range(5, 51, 5)]), (25, [*range(2, 25, 2)])],
)
def test_measured_epochs(epochs: int, measured: list[int]) -> None:
    assert list(measured_epochs(epochs)) == measured


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
        return {each["name"]: structure(Curve, each) for each in json.loads(path.read_text())["curves"]}

    found = curves()
    assert {each.method for each in found.values()} == set(study.METHODS)
    for each in found.values():
        assert [point.epoch for point in each.points] == [1, 2, 3]
        assert all(point.pseudo < 0 and point.minutes > 0 and point.unsettled > 0 for point in each.points)
        assert all((point.lawless is None) == (each.method == "tap") for point in each.points)
    readme = (asked.root / "log.md").read_text()
    assert readme.startswith("before") and "old" not in readme and "adaptive TAP, 2 iterations" in readme
    tables: list[dict[str, str]] = []
    monkeypatch.setattr(study, "publish", lambda asked, told: tables.append(told))
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
