"""The study of conditional RBMs, from recipes to tables, on a data set made on the spot."""

from __future__ import annotations

import crbm
from harness import TRAINING

from restore.learning.recipe.recipe import read_recipe


def test_the_tables_hold_the_papers_figures_for_every_method_and_task() -> None:
    assert set(crbm.PAPER) == set(crbm.METHODS)
    assert {len(row) for row in crbm.PAPER.values()} == {len(crbm.TASKS)}
    # What the paper prints in bold: the lowest error on all pixels, MLE-BP but for the last task.
    best = [min(crbm.PAPER, key=lambda method: crbm.PAPER[method][task][0]) for task in range(len(crbm.TASKS))]
    assert best == ["bp"] * 5 + ["mssvm"]


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
