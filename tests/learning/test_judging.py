"""Unconditional priors are judged by images held out, and training keeps to a time."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from grey_priors import seeded
from hypothesis import given
from hypothesis import strategies as st
from timed_runs import SHAPE, Clock, bars, in_time, log_of, recipe, timed

from restore.channels import parse_task
from restore.errors import UsageError
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages, pixel_means
from restore.learning.pipeline import Trained, course_of, split, train
from restore.learning.recipes.recipe import Recipe, parse
from restore.learning.rules.principal import PrincipalComponents, components_machine, held_out_fit
from restore.learning.run.folder import Stopped
from restore.learning.run.judging import Trial, verdict
from restore.learning.run.pace import epochs_within
from restore.learning.run.session import Session
from restore.marginals import Status
from restore.solvers import Solution

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
    images = (bars() * 0.8 + 0.1) if grey else bars()
    trained = train(settings, images, SHAPE, Session(tmp_path, "x"))
    _, clean = split(settings, images)
    observed, channel = parse_task(task, grey=grey).damage(clean, SHAPE, seeded(settings.seed))
    found = Engine.of(trained.prior, torch.device("cpu")).restore(observed, channel).means[0]
    wrong = (found - clean).square() if grey else ((found > 0.5) != (clean > 0.5)).double()
    assert 0 < float(wrong.mean()) < 0.3
    assert trained.error == pytest.approx(float(wrong.mean()), rel=1e-5)
    errors = [record["validation_error"] for record in log_of(tmp_path)]
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
    courses = [course_of(settings, bars(2000), SHAPE, held_out=bars(700)) for _ in range(2)]
    assert all(isinstance(course, CleanImages) and course.trial is not None for course in courses)
    first, second = (course.trial for course in courses)
    assert torch.equal(first.observed, second.observed) and first.clean.shape == (500, 16)
    assert 0.05 < float((first.observed != first.clean).float().mean()) < 0.15
    assert Trial is type(first)


def test_priors_are_judged_every_so_often_and_at_the_end(tmp_path: Path) -> None:
    trained = train(recipe(training={"watch_every": 4}), bars(), SHAPE, Session(tmp_path, "x"))
    judged = [record["epoch"] for record in log_of(tmp_path) if "validation_error" in record]
    assert judged == [4, 6] and trained.epoch in judged


def test_images_held_out_are_not_learnt_from(tmp_path: Path) -> None:
    settings = recipe(data={"validation": 0, "gathering": {"levels": "binary"}})
    passed = []
    trained = train(settings, bars(), SHAPE, Session(tmp_path, "x", watch=passed.append), held_out=1 - bars(30))
    assert torch.allclose(trained.prior.pixel_means, pixel_means(bars()))
    assert [one.done for one in passed] == list(range(1, 7)) and passed[0].total == 6
    assert min(one.score for one in passed) == trained.error
    assert all(0 <= one.converged <= 1 for one in passed) and passed[-1].left == 0


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing-held-out": ({"data": {"validation": 0}}, r"\[data\] validation is missing; \[training\] watch needs"),
    "no-task": ({"training": {"watch": "blur:3"}}, "'blur:3' is not a task"),
    "every-alone": ({"training": {"watch": "", "watch_every": 3}}, "watch_every has no meaning without watch"),
    "minutes": ({"training": {"minutes": -1.0}}, "minutes must be 0, for no limit, or positive, not -1.0"),
    "neither": ({"training": {"epochs": 0}}, r"\[training\] epochs is missing; add it"),
    "gathered-twice": (
        {"data": {"gathering": {"levels": "grey"}}},
        "validation and count are not for gathered images",
    ),
    "gathering": (
        {"data": {"validation": 0, "gathering": {"patches": 3}}},
        'levels is missing; give "binary" or "grey"',
    ),
}


@pytest.mark.parametrize(("tables", "says"), WRONG.values(), ids=[f"36-{name}" for name in WRONG])
def test_recipes_that_make_no_sense_are_refused(tables: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        recipe(**tables)


def test_36_learners_in_rounds_are_not_watched() -> None:
    tables = {"name": "x", "data": {"source": "y", "validation": 3}, "prior": {"hidden": 3}}
    with pytest.raises(UsageError, match=r"\[training\] watch has no meaning for frank_wolfe; leave it out"):
        parse(tables | {"learner": {"method": "frank_wolfe"}, "training": {"watch": "flip:0.1"}})


# --- a limit of time ---


@pytest.mark.usefixtures("same_learner")
def test_as_many_epochs_as_fit(tmp_path: Path) -> None:
    settings, learner = timed(minutes=2)
    trained = in_time(settings, learner, tmp_path)
    # 120 s, of which the first steps took 4; four steps of 1 s an epoch; a tenth is left for other work.
    assert trained.settled.training.epochs == int(0.9 * (120 - 4) / 4) == len(log_of(tmp_path))
    assert trained.verdict == "" and learner.clock.now <= 120
    assert trained.settled.training.minutes == 0
    # The schedule is that of so many epochs.
    assert log_of(tmp_path)[-1]["rate"] == pytest.approx(0.2 / (4 * 26))


@pytest.mark.usefixtures("same_learner")
def test_the_settled_recipe_gives_the_same_bits(tmp_path: Path) -> None:
    settings, learner = timed(minutes=1)
    first = in_time(settings, learner, tmp_path / "first")
    again = train(first.settled, bars(), SHAPE, Session(tmp_path / "again", "x"))
    for name, value in first.prior.machine.parameters.items():
        assert torch.equal(value, again.prior.machine.parameters[name]), name


@pytest.mark.usefixtures("same_learner")
def test_the_settled_recipe_of_a_run_that_was_late_gives_the_same_bits(tmp_path: Path) -> None:
    settings, learner = timed(minutes=1)

    def slower(passed: Any) -> None:
        learner.pace[0] = 3.0

    first = in_time(settings, learner, tmp_path / "first", watch=slower)
    done = len(log_of(tmp_path / "first"))
    assert first.verdict == f"time ran out after {done} of 12 epochs"
    assert (first.settled.training.last, first.settled.training.epochs) == (done, 12)
    again = train(first.settled, bars(), SHAPE, Session(tmp_path / "again", "x"))
    assert again.verdict == "" and log_of(tmp_path / "again")[-1]["epoch"] == done
    for name, value in first.prior.machine.parameters.items():
        assert torch.equal(value, again.prior.machine.parameters[name]), name


@pytest.mark.usefixtures("same_learner")
@pytest.mark.parametrize("pace", [0.5, 1.05])
def test_57_a_stopped_run_keeps_to_its_number_of_epochs_at_any_speed(
    pace: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, learner = timed(minutes=1)
    whole = in_time(settings, learner, tmp_path / "whole")
    settings, learner = timed(minutes=1)

    def stop(passed: Any) -> None:
        if passed.done == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path / "parts", watch=stop)
    learner.pace[0] = pace
    parts = in_time(settings, learner, tmp_path / "parts", resume=True)
    assert parts.settled == replace(whole.settled, learner=parts.settled.learner)
    for name, value in whole.prior.machine.parameters.items():
        assert torch.equal(value, parts.prior.machine.parameters[name]), name


@pytest.mark.usefixtures("same_learner")
def test_a_machine_that_slows_down_ends_in_time_with_the_best_so_far(tmp_path: Path) -> None:
    settings, learner = timed(minutes=2, watch_every=5)

    def slower(passed: Any) -> None:
        learner.pace[0] = 3.0

    trained = in_time(settings, learner, tmp_path, watch=slower)
    log = log_of(tmp_path)
    assert learner.clock.now <= 120 and len(log) < 26
    assert trained.verdict == f"time ran out after {len(log)} of 26 epochs"
    # The last epoch is judged too, and a finished run stays finished.
    assert "validation_error" in log[-1]
    assert trained.error == min(record.get("validation_error", 1) for record in log)
    again = in_time(settings, learner, tmp_path, resume=True)
    assert (again.epoch, again.verdict, len(log_of(tmp_path))) == (trained.epoch, trained.verdict, len(log))


@given(seconds=st.floats(-10, 1e4), first=st.floats(0.01, 100), growth=st.one_of(st.just(0.0), st.floats(0.01, 10)))
def test_the_number_of_epochs_is_the_largest_that_fits(seconds: float, first: float, growth: float) -> None:
    def length(count: int) -> float:
        return count * first + count * (count - 1) / 2 * growth

    found = epochs_within(seconds, first, growth)
    assert found >= 1
    assert found == 1 or length(found) <= seconds * (1 + 1e-6)
    assert length(found + 1) >= seconds * (1 - 1e-6)


@pytest.mark.usefixtures("quick_growth")
def test_growth_ends_in_time_and_the_settled_recipe_repeats_it(tmp_path: Path) -> None:
    small = {"penalty": 0.001, "units": 50}
    tables: dict[str, Any] = {"name": "x", "data": {"source": "bars", "validation": 20}, "prior": {"hidden": "auto"}}
    tables |= {"learner": {"method": "frank_wolfe"} | small, "inference": {"modes": 0, "starts": 1}}
    settings = parse(tables | {"training": {"minutes": 0.5}})
    clock = Clock()

    def tick(passed: Any) -> None:
        clock.now += 7.0

    def run(settings: Recipe, folder: Path) -> Trained:
        return train(settings, bars(200), SHAPE, Session(folder, "x", clock=clock, watch=tick))

    first = run(settings, tmp_path / "first")
    # A round is not begun if it would not end in time.
    assert first.verdict == "time ran out after 5 rounds"
    assert first.settled.learner.units == len(log_of(tmp_path / "first"))
    again = run(first.settled, tmp_path / "again")
    assert torch.equal(first.prior.machine.weights, again.prior.machine.weights)


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
