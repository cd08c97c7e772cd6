"""The study of growth: what it measures again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import growth
import pytest
from harness import Asked
from oracle import log_likelihood

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
