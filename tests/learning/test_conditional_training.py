"""Conditional RBMs from a recipe to restored images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conditionals import mean_field, random_prior
from machines import bars_and_stripes, seeded
from refusals import refused

from restore import zoo
from restore.channels import BitFlip, parse_task
from restore.errors import UsageError
from restore.inference.torch_engine import Engine
from restore.learning.course import DamagedImages, course_of
from restore.learning.learners import LEARNERS
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, Optimizer, PriorShape, Training
from restore.learning.rules.conditional.divergence import ConditionalDivergence, PerceptronLoss
from restore.learning.rules.conditional.likelihood import LogisticRegression
from restore.learning.rules.contract import Pairs
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import ConditionalRBM
from restore.solvers import solver_of

ALL: dict[str, Any] = {name: kind.load()() for name, kind in LEARNERS["crbm"].items()}


def recipe_of(method: str = "belief_propagation", **changed: Any) -> Recipe:
    settings: dict[str, Any] = {
        "name": f"crbm-{method}",
        "data": Data("bars-and-stripes", task="flip:0.1", validation=3),
        "prior": PriorShape(hidden=5, family="crbm", weight_scale=0.0 if method == "logistic" else 0.3),
        "method": method,
        "learner": ALL[method],
        "training": Training(epochs=2, batch=4),
        "optimizer": Optimizer(rate=0.3),
    }
    return Recipe(**settings | changed)


pytestmark = pytest.mark.usefixtures("quick_disk")


# --- from a recipe to restored images ---


def trained_on(recipe: Recipe, size: int, folder: Path, times: int = 1) -> Trained:
    images = bars_and_stripes(size).repeat(times, 1)
    return train(recipe, images, (size, size), Session(folder, "data"))


@pytest.mark.parametrize("storage", ["float16", "float32"])
@pytest.mark.parametrize("method", ALL)
def test_a_trained_prior_restores_as_it_was_trained(method: str, storage: Any, tmp_path: Path) -> None:
    recipe = recipe_of(method, storage=storage)
    trained = trained_on(recipe, 3, tmp_path / "run")
    zoo.save(tmp_path / "model", trained.prior, "# card\n")
    loaded = zoo.load(tmp_path / "model")
    assert loaded.description == trained.prior.description
    assert (loaded.description.task, loaded.description.method, len(loaded.modes)) == ("flip:0.1", method, 0)
    header = loaded.description.inference
    wanted = recipe.learner.inference(trained.epoch - 1)
    assert header == wanted
    assert header.max_iter == (1 if method == "logistic" else 7 + trained.epoch - 1)
    assert isinstance(loaded.machine, ConditionalRBM)
    for name, value in trained.prior.machine.parameters.items():
        assert torch.equal(loaded.machine.parameters[name], value), name
        assert storage == "float32" or name.startswith("units") or torch.equal(value.half().float(), value)
    engine = Engine.load(str(tmp_path / "model"), "cpu")
    observed = DamagedImages(bars_and_stripes(3), bars_and_stripes(3), (3, 3), parse_task("flip:0.2")).damaged
    solution = engine.restore(observed)
    by_hand = solver_of(replace(wanted, damping=0.0))
    means = by_hand.solve(loaded.machine.given(observed)).means[0]
    assert torch.equal(solution.means[0], means)
    assert int(solution.iterations.max()) <= wanted.max_iter
    if wanted.solver == "mean_field":
        exhausted = solution.status != 0
        visible, _ = mean_field(loaded.machine, observed, wanted.max_iter)
        torch.testing.assert_close(means[exhausted].double(), torch.from_numpy(visible)[exhausted], rtol=0, atol=1e-5)
    with refused(UsageError, "flip:0.1"):
        engine.restore(observed, BitFlip(0.1))
    # What was validated is what restores; rounding may turn a pixel or two.
    course = course_of(recipe, bars_and_stripes(3), (3, 3))
    assert isinstance(course, DamagedImages)
    judged = ((engine.restore(course.damaged).means[0] > 0.5) != (course.validation > 0.5)).float().mean()
    assert trained.error is not None and abs(float(judged) - trained.error) <= (
        2 / 27 if storage == "float16" else 1e-6
    )


# --- the Python interface ---


@pytest.mark.parametrize("kind", [ConditionalDivergence, PerceptronLoss])
def test_epochs_of_regression_come_first(kind: type[ConditionalDivergence]) -> None:
    prior, draw = random_prior((5, 3, 5)), seeded(1)
    clean, observed = ((torch.rand(8, 5, generator=draw) < 0.5).double() for _ in range(2))
    batch, learner = Pairs(observed, clean), kind(regression=2)
    wanted = LogisticRegression().step(prior, batch, {}, seeded(2), 1).gradient
    found = learner.step(prior, batch, {}, seeded(2), 1).gradient
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    after = learner.step(prior, batch, {}, seeded(2), 2).gradient
    without = kind().step(prior, batch, {}, seeded(2), 0).gradient
    assert all(torch.equal(after[name], without[name]) for name in without)
    assert float(after["weights.0"].abs().max()) > 0
