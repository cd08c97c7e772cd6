"""Muon: directions of equal size for weights, Adam for biases."""

from __future__ import annotations

import pytest
import torch
from machines import seeded
from torch import Tensor

from restore.learning.optimizers import Muon, optimizer_of, orthogonal
from restore.learning.recipe.spec import Optimizer

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
