"""Stochastic spectral descent against what is exact about it."""

from __future__ import annotations

import pytest
import torch
from directions import some_images
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_rbm, seeded
from oracle import binary_states
from torch import Tensor

from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent, sharp_matrix, sharp_vector, spectral


def random_matrix(seed: int, rows: int, columns: int, rank: int) -> Tensor:
    draw = seeded(seed)
    left = torch.randn(rows, rank, generator=draw, dtype=torch.float64)
    return left @ torch.randn(rank, columns, generator=draw, dtype=torch.float64)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_sharp_is_dual_to_the_norm(seed: int, rows: int, columns: int, rank: int) -> None:
    gradient = random_matrix(seed, rows, columns, min(rows, columns, rank))
    matrix = sharp_matrix(gradient)
    nuclear = torch.linalg.matrix_norm(gradient, "nuc")
    torch.testing.assert_close((gradient * matrix).sum(), nuclear**2)
    torch.testing.assert_close(torch.linalg.matrix_norm(matrix, 2), nuclear)
    vector = sharp_vector(gradient[0])
    torch.testing.assert_close((gradient[0] * vector).sum(), gradient[0].abs().sum() ** 2)
    torch.testing.assert_close(vector.abs().max(), gradient[0].abs().sum())


def test_sharp_of_many_matrices_and_of_none() -> None:
    many = torch.stack([random_matrix(seed, 4, 3, 2) for seed in range(5)])
    torch.testing.assert_close(sharp_matrix(many), torch.stack([sharp_matrix(one) for one in many]))
    torch.testing.assert_close(sharp_vector(many[0]), torch.stack([sharp_vector(row) for row in many[0]]))
    assert not sharp_matrix(torch.zeros(4, 3)).any()
    assert not sharp_vector(torch.zeros(4)).any()


@pytest.mark.parametrize(("visible", "hidden"), [(7, 2), (3, 6), (4, 4)])
def test_the_safe_rate_leads_to_the_top_of_each_bound(visible: int, hidden: int) -> None:
    """No multiple of a step has more of <s, x> - L |x|^2 / 2; L is the most that <x, statistics>^2 is for |x| = 1."""
    pixels, units = (binary_states(size, torch.zeros(1, dtype=torch.float64)).sum(1) for size in (visible, hidden))
    # Over all states, at the moves of norm 1 that reach the most: all ones, and all ones over sqrt(D H).
    curvatures = {
        "weights.0": float((torch.outer(pixels, units) ** 2).max()) / (visible * hidden),
        "units.0.bias": float((pixels**2).max()),
        "units.1.bias": float((units**2).max()),
    }
    gradient = {
        "weights.0": random_matrix(1, visible, hidden, 2),
        "units.0.bias": random_matrix(2, 1, visible, 1)[0],
        "units.1.bias": random_matrix(3, 1, hidden, 1)[0],
    }
    for name, step in spectral(gradient).items():
        step = step / (visible * hidden)
        norm = torch.linalg.matrix_norm(step, 2) if step.dim() == 2 else step.abs().max()
        rise, fall = float((gradient[name] * step).sum()), curvatures[name] * float(norm) ** 2
        # Of t rise - t^2 fall / 2 the top is at t = rise / fall.
        assert rise / fall == pytest.approx(1, rel=1e-9), name


def test_spectral_descent_goes_by_the_gradient_of_contrastive_divergence() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    learner = SpectralDescent("persistent", chains=6, steps=3)
    plain = ContrastiveDivergence("persistent", chains=6, steps=3, centring=False)
    state = learner.init(machine, images, seeded(1))
    got, wanted = (one.step(machine, images, state, seeded(2)) for one in (learner, plain))
    for name, value in spectral(wanted.gradient).items():
        assert torch.equal(learner.direction(got.gradient)[name], value)
    assert torch.equal(got.state["chains"], wanted.state["chains"])
