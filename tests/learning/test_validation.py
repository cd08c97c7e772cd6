"""Training runs that are judged as they go: the best prior is kept, and a run ends in time."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from fits import BATCHES, IMAGES, OPTIMIZERS, Still, after_step, bits, log_of, recipe_of, run
from torch import Tensor

from restore.learning.course import Judged, initial_prior
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, PriorShape, Training
from restore.learning.rules.contract import LearnerState, Step
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import RBM
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
