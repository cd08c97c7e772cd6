"""A step of training: up the gradient, with rate, momentum, decay, schedule and average."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fits import BATCHES, EPOCHS, IMAGES, Still, recipe_of, run
from machines import seeded
from torch import Tensor

from restore.learning.course import initial_prior
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Optimizer, Training
from restore.learning.rules.contract import LearnerState, Step
from restore.priors import RBM

pytestmark = pytest.mark.usefixtures("quick_disk")


def start_of(recipe: Recipe, images: Tensor = IMAGES) -> RBM:
    return initial_prior(images, recipe.prior.hidden, recipe.prior.weight_scale, seeded(recipe.seed))


@pytest.mark.parametrize("name", ["sgd", "adam", "muon"])
def test_weight_decay_acts_on_weights_only(name: Any, tmp_path: Path) -> None:
    optimizer = Optimizer(name=name, rate=0.1, momentum=0.0, weight_decay=0.05, schedule="constant")
    recipe = recipe_of(Still(), optimizer)
    # Pixels of different means, so that there are biases to decay.
    images = IMAGES[IMAGES[:, 0] == 1]
    recipe = replace(recipe, training=Training(epochs=EPOCHS * BATCHES, batch=len(images)))
    before, after = start_of(recipe, images), run(recipe, tmp_path, images=images)
    assert float(before.visible.parameters["bias"].abs().max()) > 1
    factor = (1 - 0.1 * 0.05) ** (EPOCHS * BATCHES)
    torch.testing.assert_close(after.weights, factor * before.weights)
    for layer, wanted in zip(after.layers, before.layers, strict=True):
        assert torch.equal(layer.parameters["bias"], wanted.parameters["bias"])


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize("average", [0.0, 0.5, 0.999])
def test_steps_climb_with_rate_momentum_and_schedule_and_an_average_forgets(
    schedule: Any, average: float, tmp_path: Path
) -> None:
    optimizer = Optimizer(rate=0.1, momentum=0.5, weight_decay=0.0, schedule=schedule, average=average)
    recipe = recipe_of(Still(slope=0.3), optimizer)
    before, after = start_of(recipe), run(recipe, tmp_path)
    total, velocity, moved, mean = EPOCHS * BATCHES, 0.0, 0.0, 0.0
    for step in range(total):
        velocity = 0.5 * velocity + 0.3
        moved += 0.1 * (1 - step / total if schedule == "linear" else 1) * velocity
        # Within the first steps there is little to remember.
        keep = min(average, (step + 1) / (step + 1 + 10))
        mean = keep * mean + (1 - keep) * moved
    for name, value in after.parameters.items():
        torch.testing.assert_close(value, before.parameters[name] + mean)


class Turned(Still):
    """Its gradients lie in memory as those of convolutions may: the last index is not the nearest one."""

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        counted = {
            name: torch.arange(value.numel(), dtype=value.dtype).view(value.shape)
            for name, value in prior.parameters.items()
        }
        return Step({name: value.t().contiguous().t() for name, value in counted.items()}, state, {})


def test_the_order_of_a_gradient_in_memory_does_not_matter(tmp_path: Path) -> None:
    recipe = recipe_of(Turned(), Optimizer(rate=0.1, momentum=0.0, weight_decay=0.0, schedule="constant"))
    before, after = start_of(recipe), run(recipe, tmp_path)
    weights = before.weights + 0.1 * EPOCHS * BATCHES * torch.arange(before.weights.numel()).view(before.weights.shape)
    torch.testing.assert_close(after.weights, weights)
