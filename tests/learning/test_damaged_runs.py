"""Training runs of conditional priors, on images that are damaged as they go."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fits import CONDITIONAL, LARGER, after_step, bits, conditional_recipe, damaged_images, log_of, recipe_of
from machines import seeded
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.learning import course as course_module
from restore.learning.course import CleanImages, course_of
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.solvers import BeliefPropagation
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
