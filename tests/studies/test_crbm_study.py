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

CELL = crbm.Cell("bp", "mnist-flip10", 10, (1.5, 0.1), (10.0, 0.2), (0.5, 0.05), 0.25)

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


def test_names_tell_method_and_task() -> None:
    assert crbm.key_of("crbm-bp-mnist-flip10") == ("bp", "mnist-flip10")
    assert crbm.key_of("crbm-cd10-mnist-patch24") == ("cd10", "mnist-patch24")
    for other in ("tap-mnist", "crbm-bp-mnist-flip15", "crbm-xx-mnist-flip10", "crbm-bp-caltech-patch8"):
        assert crbm.key_of(other) is None


def test_the_tables_hold_the_papers_figures_for_every_method_and_task() -> None:
    assert set(crbm.PAPER) == set(crbm.METHODS)
    assert {len(row) for row in crbm.PAPER.values()} == {len(crbm.TASKS)}
    # What the paper prints in bold: the lowest error on all pixels, MLE-BP but for the last task.
    best = [min(crbm.PAPER, key=lambda method: crbm.PAPER[method][task][0]) for task in range(len(crbm.TASKS))]
    assert best == ["bp"] * 5 + ["mssvm"]


def test_a_table_shows_ours_beside_theirs_and_marks_the_best() -> None:
    worse = replace(CELL, method="lr", everywhere=(1.9, 0.1))
    parts = [part.splitlines() for part in crbm.as_tables([worse, CELL]).split("\n\n")]
    assert [len(lines) for lines in parts] == [2 + len(crbm.METHODS)] * 2
    everywhere, changed = ({line.split(" | ")[0]: line for line in lines[2:]} for lines in parts)
    assert everywhere["| MLE-BP"] == "| MLE-BP | **1.500** ± 0.100 / 1.688 |"
    assert everywhere["| LR"] == "| LR | 1.900 ± 0.100 / 1.960 |"
    assert everywhere["| CD-1"] == "| CD-1 | - / 1.925 |"
    assert changed["| MLE-BP"] == "| MLE-BP | **10.00** ± 0.20 / 10.718 |"


def test_curves_over_the_size_of_the_patch() -> None:
    cells = [replace(CELL, task=f"mnist-patch{size}", everywhere=(size / 10, 0.01)) for size in (12, 4)]
    cells.append(replace(CELL, method="cd10", task="mnist-patch4", everywhere=(0.7, 0.01)))
    assert [size for size, _ in crbm.sizes(cells, "bp")] == [4, 12]
    lines = crbm.curve_table(cells).splitlines()
    assert lines[0] == "| wrong pixels, % of all | 4x4 | 12x12 |"
    assert lines[2:] == ["| MLE-BP | 0.400 ± 0.010 | 1.200 ± 0.010 |", "| CD-10 | 0.700 ± 0.010 | - |"]


def test_convergence_comes_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"epoch": k + 1, "converged": share}) + "\n" for k, share in enumerate([1, 0.5])))
    assert crbm.convergence(log) == [1, 0.5]
    for damaged in ("{", '{"epoch": 1}'):
        log.write_text(damaged)
        with pytest.raises(InputError, match=r"log\.jsonl: not the log of a run"):
            crbm.convergence(log)
    assert crbm.convergence_table({"mine": [1.0, 0.5]}).splitlines()[2] == "| mine | 100 | 50 |"


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
