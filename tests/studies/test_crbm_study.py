"""The study of conditional RBMs, from recipes to tables, on a data set made on the spot."""

from __future__ import annotations

import crbm
import torch
from crbm_noise import DrawnOnce
from harness import TRAINING
from machines import seeded

from restore.channels import parse_task
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


def test_damage_that_is_drawn_once_is_the_same_in_every_epoch() -> None:
    images = (torch.rand(20, 784, generator=seeded(0)) < 0.3).float()
    course, index = DrawnOnce(images, images[:0], (28, 28), parse_task("flip:0.2"), seed=3), torch.arange(20)
    first, again = (course.batch(index.flip(0) if seed else index, seeded(seed)) for seed in (0, 1))
    assert torch.equal(first.observed, again.observed.flip(0)) and torch.equal(first.clean, images)
    assert 0.15 < float((first.observed != images).float().mean()) < 0.25
    assert not torch.equal(first.observed, DrawnOnce(images, images[:0], (28, 28), course.task, 4).observed)
