"""Training runs of conditional priors, on images that are damaged as they go."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conditionals import mean_field, random_prior
from fits import CONDITIONAL, LARGER, after_step, bits, conditional_recipe, damaged_images, log_of, recipe_of
from machines import bars_and_stripes, seeded
from refusals import refused
from torch import Tensor

from restore import zoo
from restore.channels import BitFlip, parse_task
from restore.errors import TrainingError, UsageError
from restore.inference.torch_engine import Engine
from restore.learning import course as course_module
from restore.learning.course import CleanImages, DamagedImages, course_of
from restore.learning.learners import LEARNERS
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, Optimizer, PriorShape, Training
from restore.learning.rules.conditional.divergence import ConditionalDivergence, PerceptronLoss
from restore.learning.rules.conditional.likelihood import LogisticRegression
from restore.learning.rules.contract import Pairs
from restore.learning.run.folder import Stopped
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.learning.train import train
from restore.priors import ConditionalRBM
from restore.solvers import BeliefPropagation, solver_of
from restore.zoo.inference import Inference

pytestmark = pytest.mark.usefixtures("quick_disk")


def test_damage_is_drawn_afresh_for_every_batch_and_once_for_validation() -> None:
    course, draw = damaged_images(), seeded(3)
    index = torch.tensor([3, 0, 11])
    batches = [course.batch(index, draw) for _ in range(5)]
    for pairs in batches:
        assert torch.equal(pairs.clean, course.images[index])
        assert 0 < float((pairs.observed != pairs.clean).sum()) < 24
    assert len({bits_of(pairs.observed) for pairs in batches}) == 5
    again = course.batch(index, seeded(3))
    assert torch.equal(again.observed, batches[0].observed)
    # Neither the training's random numbers nor how often it is asked for make a difference.
    first = course.damaged
    wanted = course.task.damage(course.validation, (4, 4), seeded(0)).observed
    assert torch.equal(first, wanted)
    assert torch.equal(course.damaged, damaged_images().damaged)
    assert not torch.equal(damaged_images(seed=1).damaged, first)


def bits_of(values: Tensor) -> bytes:
    return values.numpy().tobytes()


def test_the_error_is_the_share_of_wrong_pixels_of_the_validation_images(monkeypatch: pytest.MonkeyPatch) -> None:
    course = damaged_images()
    inference = Inference("sum_product", 20, 1e-4, 0.0, modes=0, starts=0)
    prior = course.initial(3, 0.5, seeded(2))
    prior = replace(prior, visible_input=torch.eye(16) * 9 - 4)
    solver = BeliefPropagation(kind="sum", max_iter=20, tol=1e-4, damping=0.0)
    means = torch.cat([solver.solve(prior.given(image[None])).means[0] for image in course.damaged])
    wrong = (means > 0.5) != (course.validation > 0.5)
    assert 0 < int(wrong.sum()) < wrong.numel()
    assert course.judged(prior, inference).error == pytest.approx(int(wrong.sum()) / (6 * 16))
    monkeypatch.setattr(course_module, "VALIDATION_BATCH", 4)
    assert course.judged(prior, inference).error == pytest.approx(int(wrong.sum()) / (6 * 16))
    assert replace(course, validation=LARGER[:0]).judged(prior, inference) is None


def test_images_are_held_out_by_the_seed() -> None:
    courses = [course_of(conditional_recipe(seed=seed), LARGER, (4, 4)) for seed in (0, 0, 1)]
    for course in courses:
        learnt, held = (sorted(map(tuple, part.tolist())) for part in (course.images, course.validation))
        assert len(held) == 6
        assert not set(learnt) & set(held)
        assert sorted(learnt + held) == sorted(map(tuple, LARGER.tolist()))
        assert (str(course.task), course.image_shape) == ("flip:0.2", (4, 4))
    assert torch.equal(courses[0].validation, courses[1].validation)
    assert not torch.equal(courses[0].validation, courses[2].validation)
    assert len(course_of(conditional_recipe(validation=0), LARGER, (4, 4)).validation) == 0
    assert course_of(recipe_of(), LARGER, (4, 4)) == CleanImages(LARGER)


@pytest.mark.parametrize("validation", [29, 30, 10**9])
def test_too_few_images_to_hold_some_out(validation: int) -> None:
    with refused(TrainingError):
        course_of(conditional_recipe(validation=validation), LARGER, (4, 4))
    assert len(course_of(conditional_recipe(validation=28), LARGER, (4, 4)).images) == 2


@pytest.mark.parametrize("learner", CONDITIONAL)
def test_conditional_runs_stopped_at_every_step_and_resumed(
    learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = conditional_recipe(learner, task="patch:2:1" if learner == "contrastive" else "flip:0.2")
    course = lambda: course_of(recipe, LARGER, (4, 4))  # noqa: E731
    whole = fit(recipe, course(), Session(tmp_path / "whole", "data"))
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGTERM))
    resumed, stops = None, 0
    while resumed is None:
        try:
            resumed = fit(recipe, course(), Session(tmp_path / "stopped", "data", resume=True))
        except Stopped:
            stops += 1
    records = log_of(tmp_path / "whole")
    assert stops == 3 * len(records)
    assert bits(resumed.machine) == bits(whole.machine)
    assert (resumed.done, resumed.score) == (whole.done, whole.score)
    assert log_of(tmp_path / "stopped") == records
    assert whole.score == min(record["validation_error"] for record in records)


ALL: dict[str, Any] = {name: kind.load()() for name, kind in LEARNERS["crbm"].items()}


def recipe_with(method: str = "belief_propagation", **changed: Any) -> Recipe:
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


# --- from a recipe to restored images ---


def trained_on(recipe: Recipe, size: int, folder: Path, times: int = 1) -> Trained:
    images = bars_and_stripes(size).repeat(times, 1)
    return train(recipe, images, (size, size), Session(folder, "data"))


@pytest.mark.parametrize("storage", ["float16", "float32"])
@pytest.mark.parametrize("method", ALL)
def test_a_trained_prior_restores_as_it_was_trained(method: str, storage: Any, tmp_path: Path) -> None:
    recipe = recipe_with(method, storage=storage)
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
