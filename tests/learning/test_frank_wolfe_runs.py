"""Growth by Frank-Wolfe from a recipe to a prior."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from directions import IMAGES, growth_of
from refusals import refused
from torch import Tensor

import restore
from restore.errors import TrainingError
from restore.learning.course import CleanImages, course_of
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, PriorShape, Training
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.run.session import Progress, Session
from restore.learning.train import train
from restore.priors import RBM
from restore.zoo.inference import Inference

# --- recipes and runs ---

SMALL = growth_of(samples=500)


def recipe_of(hidden: int | str = "auto", learner: object = SMALL, **options: object) -> Recipe:
    in_rounds = isinstance(learner, FrankWolfe)
    return Recipe(
        name="test",
        data=Data("bars-and-stripes", validation=4 if hidden == "auto" else 0),
        prior=PriorShape(hidden=hidden),
        method="frank_wolfe" if in_rounds else "contrastive",
        learner=learner,
        training=Training(checkpoint_every=2) if in_rounds else Training(epochs=3, batch=5),
        # To draw modes would take longest.
        inference=Inference(modes=0, starts=1),
        **options,
    )


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe = recipe_of(6)
    whole = train(recipe, IMAGES, (3, 3), Session(tmp_path / "whole", "data")).prior.machine

    def stop(passed: Progress) -> None:
        assert isinstance(passed.machine, RBM) and passed.machine.hidden.size <= passed.done <= passed.total == 6
        if passed.done == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        train(recipe, IMAGES, (3, 3), Session(tmp_path / "parts", "data", watch=stop))
    parts = train(recipe, IMAGES, (3, 3), Session(tmp_path / "parts", "data", resume=True))
    assert parts.epoch == 6
    for name, value in whole.parameters.items():
        assert torch.equal(value, parts.prior.machine.parameters[name]), name
    logs = [
        [json.loads(line) for line in (tmp_path / run / "log.jsonl").read_text().splitlines()]
        for run in ("whole", "parts")
    ]
    whole_gains, parts_gains = ([entry["gain"] for entry in log] for log in logs)
    assert whole_gains == parts_gains
    with refused(TrainingError, tmp_path / "parts", "penalty"):
        train(
            recipe_of(6, replace(SMALL, penalty=0.1)), IMAGES, (3, 3), Session(tmp_path / "parts", "data", resume=True)
        )


@pytest.mark.parametrize("learner", [SMALL, ContrastiveDivergence()])
def test_images_without_anything_for_a_first_unit_are_an_error(tmp_path: Path, learner: object) -> None:
    options = {} if learner is SMALL else {"growth": SMALL}
    recipe = recipe_of(learner=learner, **options)
    with refused(TrainingError, "penalty"):
        train(recipe, torch.ones(20, 9), (3, 3), Session(tmp_path / "run", "data"), every=1)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_limit_that_comes_before_the_stopping_rule_is_said(tmp_path: Path) -> None:
    found = train(recipe_of(learner=replace(SMALL, units=2)), IMAGES, (3, 3), Session(tmp_path, "data"))
    assert (found.prior.description.hidden, found.epoch) == (2, 2) and "units" in found.verdict


def filling(growth: FrankWolfe, filled: int = 9) -> Recipe:
    """A recipe that wants nine units for the learner that goes on from what is grown."""
    made = recipe_of(learner=ContrastiveDivergence(), growth=growth)
    return replace(made, prior=replace(made.prior, filled=filled, weight_scale=0.02), storage="float32")


def first_of(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RBM:
    """The machine from which the learner goes on that follows the growth."""
    seen: list[RBM] = []

    def course(recipe: Recipe, images: Tensor, shape: tuple[int, int], start: RBM, validation: Tensor) -> CleanImages:
        seen.append(start)
        return course_of(recipe, images, shape, start, validation)

    monkeypatch.setattr("restore.learning.train.course_of", course)
    train(recipe, IMAGES, (3, 3), Session(folder, "data", resume=True))
    return seen[0]


@pytest.mark.thorough
def test_a_growth_that_a_limit_ended_is_filled_up_with_units_of_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = first_of(filling(growth_of(3), 0), tmp_path / "grown", monkeypatch)
    filled = first_of(filling(growth_of(3)), tmp_path / "filled", monkeypatch)
    assert (grown.hidden.size, filled.hidden.size) == (3, 9)
    assert torch.equal(filled.weights[:, :3], grown.weights)
    assert torch.equal(filled.visible.parameters["bias"], grown.visible.parameters["bias"])
    assert torch.equal(filled.hidden.parameters["bias"], torch.cat([grown.hidden.parameters["bias"], torch.zeros(6)]))
    drawn = filled.weights[:, 3:]
    # 54 draws: their spread is known to a tenth or so.
    assert 0.012 < float(drawn.std()) < 0.03 and abs(float(drawn.mean())) < 0.02
    again = first_of(filling(growth_of(3)), tmp_path / "filled", monkeypatch)
    assert torch.equal(again.weights, filled.weights)


def test_a_growth_that_images_held_out_ended_is_large_enough(tmp_path: Path) -> None:
    # All that later units bring is less than all units together.
    recipe = filling(growth_of(samples=500, window=2, least=0.99))
    for resume in (False, True):
        found = train(recipe, IMAGES, (3, 3), Session(tmp_path, "data", resume=resume))
        assert found.prior.description.hidden < 8 and "random" not in found.verdict


# --- for users ---


@pytest.mark.usefixtures("quick_growth")
def test_restore_train_finds_the_size(tmp_path: Path) -> None:
    images = IMAGES.reshape(-1, 3, 3).numpy()
    small = {"penalty": 0.01}
    mine = restore.train(np.tile(images, (4, 1, 1)), hidden="auto", epochs=2, growth=small | {"units": 6})
    assert 1 <= mine.description.hidden <= 6
    few = restore.train(images[2:7], hidden="auto", epochs=1, growth=small | {"units": 1})
    assert few.description.hidden == 1  # of five images one is held out
    alone = restore.train(images, hidden=3, learner={"method": "frank_wolfe", **small})
    assert alone.description.hidden == 3 and alone.description.method == "frank_wolfe"
