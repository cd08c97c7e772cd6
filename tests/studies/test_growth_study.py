"""The study of growth: what it measures again, which trial it shows, and its slower annealing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import growth
import pytest
import torch
from harness import Asked
from oracle import log_likelihood

from restore.evaluation.likelihoods.ais import temperatures
from restore.inference.torch_engine import Engine
from restore.learning.course import split
from restore.learning.recipe.recipe import read_recipe

RECIPE = """
name = "NAME"
seed = SEED
[data]
source = "bars-and-stripes"
validation = 4
[prior]
hidden = 4
[learner]
method = "contrastive"
[training]
epochs = 2
batch = 10
[inference]
modes = 0
starts = 1
"""

POINT = growth.Point("", "mnist", growth.RANDOM, 5, 1.0, -9.0, (-9.5, -8.5), 30.0, 0.1, "", "")
ALL_GROWN = [("fw-mnist", 5), ("fw-mnist", 6), ("fw-mnist-7", 7)]


def test_names_say_the_method_and_the_data() -> None:
    assert growth.kind_of("cd-fw-mnist-700") == (growth.TUNED, "mnist")
    assert growth.kind_of("fw-caltech-700") == (growth.GROWN, "caltech")
    assert growth.kind_of("cd-caltech-100-3") == (growth.RANDOM, "caltech")
    assert growth.kind_of("pcd-fw-caltech-536") == (growth.PERSISTENT, "caltech")
    assert growth.kind_of("cd-mnist") is growth.kind_of("pcd-mnist") is growth.kind_of("tap-mnist-100") is None


def test_slower_annealing_passes_the_same_temperatures_and_others() -> None:
    betas = temperatures("linear:5") ** 2
    finer = torch.tensor(growth.refined(betas, 3), dtype=torch.float64)
    assert torch.equal(finer[::3], betas) and len(finer) == 13
    assert bool((finer.diff() > 0).all()) and torch.allclose(finer.diff()[:3], betas[1] / 3)


def test_of_several_trials_the_best_is_shown_and_what_the_worst_has() -> None:
    grown = [replace(POINT, method=growth.GROWN, name=name, hidden=hidden) for name, hidden in ALL_GROWN]
    trials = [replace(POINT, likelihood=likelihood) for likelihood in (-9.0, -8.0, -10.0)]
    rows = [line for line in growth.as_tables([*trials, *grown]).splitlines() if line[:3].strip("| ").isdigit()]
    assert len(rows) == 4
    assert "best of 3 | -8.00 (worst -10.00) |" in rows[1]
    # Growth that was told to go on has not stopped anywhere.
    assert [row for row in rows if "stopped here" in row] == rows[2:3]


def test_annealing_gets_slower_until_enough_runs_count() -> None:
    enough, few, least = growth.ENOUGH, growth.ENOUGH - 1, growth.LEAST_RUNS - 1
    first, last = growth.SLOWER
    needed = {(1, enough): 0, (1, few): first, (1, least): last, (first, few): last, (first, enough): 0, (last, 1): 0}
    assert {case: growth._slower(*case) for case in needed} == needed


@pytest.mark.thorough
def test_a_prior_is_trained_once_and_annealed_again_if_few_runs_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"SCHEDULE": "linear:50", "RUNS": 20, "ENOUGH": 0, "SLOWER": (2, 3)}.items():
        monkeypatch.setattr(growth, name, value)
    # The set has no labels.
    monkeypatch.setattr(growth, "examples_of", lambda *_: None)
    monkeypatch.setattr(growth, "wrong_share", lambda *_: 0.25)
    asked = Asked(tmp_path, device="cpu", train_missing=True)
    asked.recipes.mkdir()
    for seed in (0, 1):
        name = f"cd-mnist-4-{seed}"
        (asked.recipes / f"{name}.toml").write_text(RECIPE.replace("NAME", name).replace("SEED", str(seed)))
    record = asked.records / "growth.json"

    def points() -> list[dict[str, object]]:
        return list(json.loads(record.read_text())["points"])

    growth.study(replace(asked, models=("cd-mnist-4-1",)))
    assert [point["name"] for point in points()] == ["cd-mnist-4-1"]
    growth.study(asked)
    quick = points()
    assert [(point["name"], point["slower"]) for point in quick] == [("cd-mnist-4-0", 1), ("cd-mnist-4-1", 1)]
    assert [point["error"] for point in quick] == [0.25, None]
    machine = Engine.load(str(tmp_path / "runs/priors/cd-mnist-4-0"), "cpu").trained.machine
    images = asked.images("bars-and-stripes", "train")
    parts = split(read_recipe(asked.recipes / "cd-mnist-4-0.toml"), images)
    training, held_out = (log_likelihood(machine, part).mean() for part in parts)
    assert len(parts[1]) == 4 and quick[0]["gap"] == pytest.approx(float(training - held_out), abs=1e-5)
    # Runs are needed no more, but for priors that are annealed again.
    shutil.rmtree(asked.runs / "cd-mnist-4-0")
    monkeypatch.setattr(growth, "ENOUGH", 21)
    growth.study(asked)
    for before, after in zip(quick, points(), strict=True):
        assert after["slower"] == 3 and after["likelihood"] != before["likelihood"]
        assert all(after[name] == before[name] for name in ("minutes", "error", "weights", "gap"))
    slow = record.read_bytes()
    shutil.rmtree(asked.runs)
    growth.study(asked)
    assert record.read_bytes() == slow and not asked.runs.exists()
