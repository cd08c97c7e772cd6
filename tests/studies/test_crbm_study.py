"""The study of conditional RBMs, from recipes to tables, on a data set made on the spot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import crbm
import numpy as np
import pytest
from harness import TRAINING, Asked

from restore import zoo
from restore.errors import InputError
from restore.learning.recipe.recipe import read_recipe

RECIPE = """
name = "{name}"
seed = 0

[data]
source = "{source}"
task = "flip:0.1"
validation = 20

[prior]
family = "crbm"
hidden = {hidden}
weight_scale = {scale}

[learner]
method = "{method}"

[optimizer]
rate = 0.1

[training]
epochs = 2
batch = 10
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A folder of recipes for two methods, with a log that has room for the tables."""
    stripes = np.arange(60)[:, None, None] % 2 == np.arange(6)[None, :, None] // 2 % 2
    images = np.broadcast_to(stripes, (60, 6, 6))
    np.save(tmp_path / "stripes.npy", images)
    folder = tmp_path / "training"
    (folder / "recipes" / "crbm").mkdir(parents=True)
    source = tmp_path / "stripes.npy"
    for name, method, hidden, scale in (("bp", "belief_propagation", 4, 0.1), ("lr", "logistic", 1, 0.0)):
        name = f"crbm-{name}-mnist-flip10"
        text = RECIPE.format(name=name, source=source, method=method, hidden=hidden, scale=scale)
        (folder / "recipes" / "crbm" / f"{name}.toml").write_text(text)
    (folder / "log.md").write_text("# Log\n<!-- crbm: begin -->\nold\n<!-- crbm: end -->\n")
    return folder


def test_the_tables_hold_the_papers_figures_for_every_method_and_task() -> None:
    assert set(crbm.PAPER) == set(crbm.METHODS)
    assert {len(row) for row in crbm.PAPER.values()} == {len(crbm.TASKS)}
    # What the paper prints in bold: the lowest error on all pixels, MLE-BP but for the last task.
    best = [min(crbm.PAPER, key=lambda method: crbm.PAPER[method][task][0]) for task in range(len(crbm.TASKS))]
    assert best == ["bp"] * 5 + ["mssvm"]


@pytest.mark.thorough
def test_what_is_missing_is_trained_measured_and_written(training: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    asked = Asked(training, runs=training.parent / "runs", priors=training.parent / "priors", n=30)
    with pytest.raises(InputError, match="give --train"):
        crbm.study(asked)
    asked = replace(asked, train_missing=True)
    crbm.study(asked)
    said = capsys.readouterr()
    record = json.loads((asked.records / "crbm.json").read_text())
    found = {cell["method"]: cell for cell in record["cells"]}
    assert set(found) == {"bp", "lr"} and found["bp"]["n"] == 30
    assert (asked.records / "crbm.png").stat().st_size > 5000
    readme = (asked.root / "log.md").read_text()
    assert "old" not in readme and f"{found['bp']['everywhere'][0]:.3f}" in readme
    assert "MNIST, flip 10 %" in said.out
    assert len(record["converged"]["MNIST, flip 10 %"]) == 2
    # Once trained they are measured as they are.
    weights = asked.priors / "crbm-bp-mnist-flip10" / zoo.WEIGHTS
    trained = weights.stat().st_mtime_ns
    crbm.study(asked)
    assert weights.stat().st_mtime_ns == trained
    assert json.loads((asked.records / "crbm.json").read_text()) == record


def test_every_recipe_of_the_repository_is_named_for_what_it_trains() -> None:
    paths = sorted((TRAINING / "recipes").rglob("crbm-*.toml"))
    assert paths
    for path in paths:
        recipe, key = read_recipe(path), crbm.key_of(path.stem)
        assert recipe.name == path.stem and key is not None
        _, task = key
        kind, amount = recipe.data.task.split(":")[:2]
        number = f"{100 * float(amount):.0f}" if kind == "flip" else amount
        assert task.split("-") == ["mnist" if recipe.data.source == "mnist" else "caltech", f"{kind}{number}"]
