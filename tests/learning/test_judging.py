"""Unconditional priors are judged by images held out, and training keeps to a time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lessons import SHAPE, columns, recipe, timed_log_of
from priors import seeded

from restore.channels import parse_task
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages, Trial, course_of, pixel_means, split, verdict
from restore.learning.rules.principal import PrincipalComponents, components_machine, held_out_fit
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.solvers import Solution
from restore.status import Status

# --- the verdict ---


@pytest.mark.parametrize("grey", [False, True])
def test_the_error_is_that_of_the_engine_from_one_start(grey: bool, tmp_path: Path) -> None:
    units = {"visible": "truncated-gaussian"} if grey else {}
    task = "noise:0.3" if grey else "flip:0.2"
    settings = recipe(
        prior=units,
        training={"watch": task},
        optimizer={"rate": 0.02 if grey else 0.2},
        inference={"max_iter": 100, "tol": 1e-3},
    )
    settings = replace(settings, storage="float32")
    images = (columns() * 0.8 + 0.1) if grey else columns()
    trained = train(settings, images, SHAPE, Session(tmp_path, "x"))
    _, clean = split(settings, images)
    observed, damage = parse_task(task, grey=grey).damage(clean, SHAPE, seeded(settings.seed))
    found = Engine.of(trained.prior, torch.device("cpu")).restore(observed, damage.channel(grey)).means[0]
    wrong = (found - clean).square() if grey else ((found > 0.5) != (clean > 0.5)).double()
    assert 0 < float(wrong.mean()) < 0.3
    assert trained.error == pytest.approx(float(wrong.mean()), rel=1e-5)
    errors = [record["validation_error"] for record in timed_log_of(tmp_path)]
    assert trained.error == min(errors) and trained.epoch == 1 + errors.index(min(errors))


def test_what_diverged_is_wrong() -> None:
    clean = torch.zeros(2, 4)
    means = torch.tensor([[0.1, 0.2, 0.6, 0.1], [math.nan] * 4])
    status = torch.tensor([int(Status.CONVERGED), int(Status.DIVERGED)])
    found = Solution((means,), (means,), torch.zeros(2), torch.ones(2), torch.zeros(2), status)
    assert verdict([found], clean) == (5 / 8, 0.5)
    squares = (0.01 + 0.04 + 0.36 + 0.01 + 4) / 8
    assert verdict([found], clean, grey=True) == pytest.approx((squares, 0.5))


def test_the_damage_is_the_same_in_every_epoch_and_of_no_more_images_than_count() -> None:
    settings = recipe()
    courses = [course_of(settings, columns(2000), SHAPE, held_out=columns(700)) for _ in range(2)]
    assert all(isinstance(course, CleanImages) and course.trial is not None for course in courses)
    first, second = (course.trial for course in courses)
    assert torch.equal(first.observed, second.observed) and first.clean.shape == (500, 16)
    assert 0.05 < float((first.observed != first.clean).float().mean()) < 0.15
    assert Trial is type(first)


def test_priors_are_judged_every_so_often_and_at_the_end(tmp_path: Path) -> None:
    trained = train(recipe(training={"watch_every": 4}), columns(), SHAPE, Session(tmp_path, "x"))
    judged = [record["epoch"] for record in timed_log_of(tmp_path) if "validation_error" in record]
    assert judged == [4, 6] and trained.epoch in judged


def test_images_held_out_are_not_learnt_from(tmp_path: Path) -> None:
    settings = recipe(data={"validation": 0, "gathering": {"levels": "binary"}})
    passed = []
    trained = train(settings, columns(), SHAPE, Session(tmp_path, "x", watch=passed.append), held_out=1 - columns(30))
    assert torch.allclose(trained.prior.pixel_means, pixel_means(columns()))
    assert [one.done for one in passed] == list(range(1, 7)) and passed[0].total == 6
    assert min(one.score for one in passed) == trained.error
    assert passed[-1].progress == 1


# --- the number of principal components ---


def test_held_out_likelihoods_are_those_of_the_machines() -> None:
    generator = seeded(3)
    mixing = torch.randn(6, 6, generator=generator, dtype=torch.float64).tril() * torch.tensor([2, 1, 1, 0.1, 0.1, 0.1])
    training, held_out = (torch.randn(n, 6, generator=generator, dtype=torch.float64) @ mixing.T for n in (300, 50))
    mean = training.mean(0)
    variances, directions = torch.linalg.eigh((training - mean).T @ (training - mean) / 300)
    found = held_out_fit(variances, (held_out - mean) @ directions)
    for hidden in range(1, 6):
        state = PrincipalComponents(hidden).advance(training, {}, seeded(0)).state
        weights, curvature = state["weights.0"], state["units.0.quadratic"]
        covariance = torch.linalg.inv(torch.diag(curvature) - weights @ weights.T)
        normal = torch.distributions.MultivariateNormal(mean, (covariance + covariance.T) / 2)
        wanted = normal.log_prob(held_out).mean() + 3 * math.log(2 * math.pi)
        assert float(found[hidden - 1]) == pytest.approx(float(wanted), abs=1e-6)
    chosen = PrincipalComponents("auto", held_out).advance(training, {}, seeded(0)).state
    assert components_machine(chosen).hidden.size == 1 + int(found.argmax())
