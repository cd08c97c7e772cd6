"""Runs that are judged as they go: by what error, that the best prior is kept, and what is said."""

from __future__ import annotations

import math
import os
import signal
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from fits import BATCHES, IMAGES, OPTIMIZERS, Still, after_step, bits, log_of, recipe_of, run
from lessons import SHAPE, columns, recipe, timed_log_of
from priors import seeded
from torch import Tensor

from restore.channels import parse_task
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages, Judged, Trial, course_of, initial_prior, pixel_means, split, verdict
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, PriorShape, Training
from restore.learning.rules.contract import LearnerState, Step
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.principal import PrincipalComponents, components_machine, held_out_fit
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.learning.train import train
from restore.priors import RBM
from restore.solvers import Solution
from restore.status import Status
from restore.zoo.inference import Inference

pytestmark = pytest.mark.usefixtures("quick_disk")


# --- validation ---


@dataclass
class Graded:
    """A course whose error after each epoch is given; it keeps the parameters it was asked about."""

    errors: Sequence[float]
    images: Tensor = IMAGES
    asked: list[dict[str, bytes]] = field(default_factory=list)
    inferences: list[Inference] = field(default_factory=list)

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> RBM:
        return initial_prior(self.images, hidden, weight_scale, generator)

    def batch(self, index: Tensor, generator: torch.Generator) -> Tensor:
        return self.images[index]

    def judged(self, prior: RBM, inference: Inference) -> Judged:
        self.asked.append(bits(prior))
        self.inferences.append(inference)
        return Judged(self.errors[len(self.asked) - 1], 1.0)


@dataclass(frozen=True)
class Restoring(ContrastiveDivergence):
    """A learner of an RBM that says how to restore, as learners of conditional ones do."""

    def inference(self, epoch: int) -> Inference:
        return Inference(max_iter=7 + epoch, modes=0, starts=0)


def judged(epochs: int = 8, average: float = 0.0, every: int = 1) -> Recipe:
    return recipe_of(
        Restoring(),
        replace(OPTIMIZERS["sgd"], average=average),
        data=Data("bars-and-stripes", task="flip:0.1", validation=4),
        prior=PriorShape(hidden=3, family="crbm", weight_scale=0.1),
        training=Training(epochs=epochs, batch=4, checkpoint_every=every),
    )


def judge(recipe: Recipe, course: Graded, folder: Path, resume: bool = False) -> Progress:
    return fit(recipe, course, Session(folder, "data", resume=resume))


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_prior_with_the_lowest_error_is_returned(average: float, tmp_path: Path) -> None:
    course = Graded([0.5, 0.3, 0.2, 0.4, 0.2, 0.6, 0.7, 0.8])
    fitted = judge(judged(average=average), course, tmp_path)
    # The first of two equally good ones.
    assert (fitted.done, fitted.score) == (3, 0.2)
    assert len(course.asked) == 8
    assert len({state["weights.0"] for state in course.asked}) == 8
    assert bits(fitted.machine) == course.asked[2]
    assert [record["validation_error"] for record in log_of(tmp_path)] == course.errors
    # Each epoch is judged by the inference that its learner names.
    assert [inference.max_iter for inference in course.inferences] == list(range(7, 15))
    assert bits(judge(judged(average=average), Graded([]), tmp_path, resume=True).machine) == course.asked[2]


@pytest.mark.parametrize("every", [1, 3])
def test_a_finished_run_stays_finished(every: int, tmp_path: Path) -> None:
    recipe, errors = judged(every=every), [0.5, 0.6, 0.7, 0.4, 0.5, 0.6, 0.39, 0.5]
    fitted = judge(recipe, Graded(errors), tmp_path)
    assert len(log_of(tmp_path)) == 8 and (fitted.done, fitted.score) == (7, 0.39)
    # However few checkpoints there are, the last step has one.
    assert checkpoints.load(tmp_path).step == 8 * BATCHES
    again = judge(recipe, Graded([]), tmp_path, resume=True)
    assert (again.done, again.score, bits(again.machine)) == (fitted.done, fitted.score, bits(fitted.machine))
    assert len(log_of(tmp_path)) == 8


# --- a solver that stops converging ---


@dataclass(frozen=True)
class Converging(Still):
    """A learner whose solver converges for a given share of the images in each epoch."""

    shares: Sequence[float] = ()

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        made = super().step(prior, batch, state, generator, epoch)
        return replace(made, monitors={"converged": torch.tensor(self.shares[epoch])})

    def inference(self, epoch: int) -> Inference:
        return Inference(modes=0, starts=0)


@pytest.mark.parametrize(
    ("shares", "warned_of"),
    [
        ((0.9, 0.8, 0.7, 0.6), []),
        # What goes on unchanged is said once.
        ((0.1, 0.2, 0.1, 0.0), [1]),
        ((0.1, 0.9, 0.4, 0.3), [1, 3]),
        ((0.9, 0.4, 0.6, 0.2), [2, 4]),
        ((0.5, 0.49, 0.5, 0.5), [2]),
    ],
)
def test_a_solver_that_stops_converging_is_reported(
    shares: tuple[float, ...], warned_of: list[int], tmp_path: Path
) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(recipe_of(Converging(shares=shares)), tmp_path)
    texts = [str(warning.message) for warning in found]
    sentences = {
        epoch: f"the solver converged for only {shares[epoch - 1]:.0%} of the images of epoch {epoch}: lower the rate, "
        "raise weight_decay, or allow more iterations"
        for epoch in warned_of
    }
    assert texts == [f"{tmp_path}: {sentence}" for sentence in sentences.values()]
    assert {record["epoch"]: record["warning"] for record in log_of(tmp_path) if "warning" in record} == sentences
    assert [record["converged"] for record in log_of(tmp_path)] == pytest.approx(list(shares), rel=1e-6)


def test_what_has_been_seen_to_converge_is_remembered_over_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(Converging(shares=[0.9, 0.1, 0.9, 0.9]))
    after_step(monkeypatch, recipe.learner, lambda taken: taken == 6 and os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        run(recipe, tmp_path)
    monkeypatch.undo()
    with pytest.warns(UserWarning):
        run(recipe, tmp_path, resume=True)


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
