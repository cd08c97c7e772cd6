"""Training runs of a second or less, for the tests of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from machines import bars_and_stripes
from torch import Tensor

from restore.channels import parse_task
from restore.learning.course import CleanImages, DamagedImages
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, Optimizer, PriorShape, Training
from restore.learning.rules.conditional.divergence import ConditionalDivergence, PerceptronLoss
from restore.learning.rules.conditional.likelihood import (
    BeliefPropagationLikelihood,
    LogisticRegression,
    MeanFieldLikelihood,
)
from restore.learning.rules.conditional.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.rules.contract import LearnerState, LearningRule, Step
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.priors import RBM

IMAGES = bars_and_stripes(3)

EPOCHS, BATCHES = 4, 4

LEARNERS: dict[str, Any] = {
    "tap-data": TAPLikelihood(),
    "tap-persistent": TAPLikelihood(starts="persistent", solutions=5),
    "tap-redrawn": TAPLikelihood(starts="redrawn", solutions=5, damping=0.2),
    "adaptive-tap": TAPLikelihood(fixed_point="adaptive_tap", damping=0.5),
    "adaptive-tap-persistent": TAPLikelihood(fixed_point="adaptive_tap", starts="persistent", solutions=5, damping=0.5),
    "cd": ContrastiveDivergence(steps=2),
    "pcd": ContrastiveDivergence(starts="persistent", chains=5, centring=False),
    "s-dcp": ContrastiveDivergence(steps=2, centring=False, inner_steps=3),
    "cs-dcp": ContrastiveDivergence(steps=2, inner_steps=3),
    "pcd-inner": ContrastiveDivergence(starts="persistent", chains=5, inner_steps=2),
    "ssd": SpectralDescent(starts="persistent", chains=5),
}

OPTIMIZERS = {
    "sgd": Optimizer(rate=0.2),
    "sgd-plain": Optimizer(rate=0.2, momentum=0.0, weight_decay=0.0, schedule="constant"),
    "adam": Optimizer(name="adam", rate=0.05, momentum=0.9, weight_decay=0.1),
    "muon": Optimizer(name="muon", rate=0.02, momentum=0.9, weight_decay=0.1),
}


def recipe_of(learner: Any = "pcd", optimizer: str | Optimizer = "sgd", **changed: Any) -> Recipe:
    return Recipe(
        name="test",
        data=changed.pop("data", Data("bars-and-stripes")),
        prior=changed.pop("prior", PriorShape(hidden=3, weight_scale=0.1)),
        method=changed.pop("method", "tap"),
        learner=LEARNERS.get(learner, learner) if isinstance(learner, str) else learner,
        # 14 images in batches of 4: the last one is smaller.
        training=changed.pop("training", Training(epochs=EPOCHS, batch=4, checkpoint_every=2)),
        optimizer=OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        **changed,
    )


def run(
    recipe: Recipe, folder: Path, resume: bool = False, images: Tensor = IMAGES, data: str = "data", **session: Any
) -> RBM:
    return fit(recipe, CleanImages(images), Session(folder, data, resume, **session)).machine


def bits(prior: RBM) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in prior.parameters.items()}


def log_of(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def after_step(monkeypatch: pytest.MonkeyPatch, learner: Any, act: Callable[[int], None]) -> None:
    """Call `act` with the number of steps taken since now, just before each step's gradient is returned."""
    kind, taken = type(learner), 0
    original = kind.step

    def step(self: Any, *arguments: Any) -> Step:
        nonlocal taken
        taken += 1
        result = original(self, *arguments)
        act(taken)
        return result

    monkeypatch.setattr(kind, "step", step)


def stopped_run(folder: Path, recipe: Recipe, images: Tensor = IMAGES) -> None:
    with pytest.MonkeyPatch.context() as patch:
        after_step(patch, recipe.learner, lambda taken: taken == 6 and os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(Stopped):
            run(recipe, folder, images=images)


@dataclass(frozen=True)
class Still(LearningRule):
    """A learner whose gradient is the same number everywhere."""

    slope: float = 0.0

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        return {}

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        return Step({name: torch.full_like(value, self.slope) for name, value in prior.parameters.items()}, state, {})


CONDITIONAL: dict[str, Any] = {
    "belief_propagation": BeliefPropagationLikelihood(iterations=3),
    "mean_field": MeanFieldLikelihood(iterations=3),
    "contrastive": ConditionalDivergence(),
    "perceptron": PerceptronLoss(steps=2),
    "marginal_max_margin": MarginalMaxMargin(iterations=3),
    "latent_max_margin": LatentMaxMargin(iterations=3),
    "logistic": LogisticRegression(),
}

LARGER = bars_and_stripes(4)


def conditional_recipe(
    learner: str = "mean_field", task: str = "flip:0.2", validation: int = 6, rate: float = 0.5, **changed: Any
) -> Recipe:
    return recipe_of(
        CONDITIONAL[learner],
        Optimizer(rate=rate, average=0.9),
        method=learner,
        data=Data("bars-and-stripes", task=task, validation=validation),
        prior=PriorShape(hidden=3, family="crbm", weight_scale=0.0 if learner == "logistic" else 0.1),
        training=Training(epochs=EPOCHS, batch=8, checkpoint_every=2),
        **changed,
    )


def damaged_images(seed: int = 0, task: str = "flip:0.2") -> DamagedImages:
    return DamagedImages(LARGER[6:], LARGER[:6], (4, 4), parse_task(task), seed)
