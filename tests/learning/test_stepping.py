"""A step of training: up the gradient, with rate, momentum, decay, schedule and average; and Muon."""

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
from restore.learning.optimizers import Muon, optimizer_of, orthogonal
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


SETTINGS = Optimizer(name="muon", rate=0.01, momentum=0.95, weight_decay=0.1)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(5, 5), (3, 40), (40, 3), (64, 576)])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_all_singular_values_come_near_1_and_the_singular_vectors_stay(shape: tuple[int, int], size: float) -> None:
    matrix = normal(*shape)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.T @ orthogonal(size * matrix) @ right.T
    assert float(values.min()) > 0.005 * float(matrix.norm())
    assert float(found.diagonal().min()) > 0.6 and float(found.diagonal().max()) < 1.2
    torch.testing.assert_close(found, found.diagonal().diag(), atol=1e-9, rtol=0)


def test_nothing_to_learn_moves_nothing() -> None:
    assert not orthogonal(torch.zeros(3, 4)).any()


def test_weights_move_as_with_muon_of_torch() -> None:
    """That one computes in bfloat16, with about three digits."""
    ours, biases = normal(8, 3, 3, 3).float(), torch.zeros(4)
    theirs = ours.clone().flatten(1)
    optimizer = optimizer_of(SETTINGS, {"weights.0": ours, "units.0.bias": biases})
    reference = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, momentum=0.95)
    before = ours.clone()
    for step in range(20):
        slope = normal(8, 3, 3, 3, seed=step + 1).float()
        ours.grad, biases.grad, theirs.grad = slope, torch.ones(4), -slope.flatten(1)
        optimizer.step()
        reference.step()
    moved = (theirs - before.flatten(1)).norm()
    assert float((ours.flatten(1) - theirs).norm() / moved) < 0.02


def test_biases_move_as_with_adam() -> None:
    ours, theirs = torch.zeros(4), torch.zeros(4)
    optimizer = Muon([{"params": [torch.zeros(2, 2)]}, {"params": [ours]}], lr=0.01, betas=(0.9, 0.999), maximize=True)
    reference = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.999), maximize=True)
    for step in range(5):
        optimizer.param_groups[0]["params"][0].grad = torch.ones(2, 2)
        ours.grad = theirs.grad = normal(4, seed=step).float()
        optimizer.step()
        reference.step()
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("maximize", [False, True])
def test_weights_and_biases_move_the_same_way(maximize: bool) -> None:
    weights, biases = torch.zeros(2, 2), torch.zeros(2)
    groups = [{"params": [weights]}, {"params": [biases]}]
    optimizer = Muon(groups, lr=0.01, betas=(0.9, 0.999), maximize=maximize)
    weights.grad, biases.grad = torch.eye(2), torch.ones(2)
    optimizer.step()
    assert bool((biases > 0).all()) == bool((weights.diagonal() > 0).all()) == maximize


def test_a_symmetric_gradient_moves_symmetrically() -> None:
    matrix = normal(6, 6)
    found = orthogonal(matrix + matrix.T)
    torch.testing.assert_close(found, found.T)
