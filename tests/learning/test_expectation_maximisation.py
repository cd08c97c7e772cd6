"""Mixtures of principal components: that rounds never lose, what they end at, and which recipes are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from refusals import refused
from scipy.stats import multivariate_normal
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.rules.mixture import ExpectationMaximisation, Maximisation, densities


def two_kinds(count: int, pixels: int, seed: int) -> Tensor:
    """Patches that vary along one of two directions, at any level; double precision."""
    draw = seeded(seed)
    directions = torch.randn(2, pixels, generator=draw).double()
    kind = torch.randint(2, (count,), generator=draw)
    along = 0.2 * torch.randn(count, 1, generator=draw).double() * directions[kind]
    level = 0.5 + 0.2 * torch.randn(count, 1, generator=draw).double()
    return level + along + 0.02 * torch.randn(count, pixels, generator=draw).double()


def rounds(images: Tensor, learner: Maximisation) -> tuple[list[float], dict[str, Tensor]]:
    """The log-likelihood before each round, and the last state."""
    draw, found = seeded(0), []
    state = learner.begin(images, draw)
    for _ in range(learner.rounds):
        result = learner.advance(images, state, draw)
        state = dict(result.state)
        found.append(result.monitors["nats_per_pixel"])
    return found, state


@settings(max_examples=15, deadline=None)
@given(components=st.integers(1, 4), hidden=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_likelihood_never_falls(components: int, hidden: int, seed: int) -> None:
    found, _ = rounds(two_kinds(60, 6, seed), Maximisation(components, hidden, 12))
    assert (np.diff(found) > -1e-9).all()


def test_it_ends_with_the_kinds_that_patches_are_of() -> None:
    """Two directions and a noise, known before: each component has one of them."""
    images = two_kinds(4000, 6, seed=7)
    _, state = rounds(images, Maximisation(2, 1, 60))
    draw = seeded(7)
    truth = torch.randn(2, 6, generator=draw).double()
    truth = truth - truth.mean(1, keepdim=True)
    found = state["loadings"][:, :, 0]
    alike = (torch.nn.functional.normalize(found) @ torch.nn.functional.normalize(truth).T).abs()
    assert sorted(alike.argmax(1).tolist()) == [0, 1] and alike.amax(1).min() > 0.99
    torch.testing.assert_close(found.norm(dim=1)[alike.argmax(0)], 0.2 * truth.norm(dim=1), rtol=0.1, atol=0)
    torch.testing.assert_close(state["noise"].sqrt(), torch.full((2,), 0.02).double(), rtol=0.1, atol=0)
    assert state["level"].item() == pytest.approx(0.2, rel=0.2)


def test_densities_are_those_of_normal_distributions_of_what_is_left_without_means() -> None:
    draw, pixels = seeded(1), 5
    images = two_kinds(50, pixels, seed=1)
    _, state = rounds(images, Maximisation(3, 2, 3))
    # A basis of what has the mean 0.
    basis = np.linalg.svd(np.ones((1, pixels)))[2][1:]
    patches = torch.randn(4, pixels, generator=draw).double()
    patches = patches - patches.mean(1, keepdim=True)
    for component, found in enumerate(densities(state)(patches).T):
        loadings = basis @ state["loadings"][component].numpy()
        covariance = loadings @ loadings.T + state["noise"][component].item() * np.eye(pixels - 1)
        expected = multivariate_normal(np.zeros(pixels - 1), covariance).logpdf(patches.numpy() @ basis.T)
        np.testing.assert_allclose(found.numpy(), expected + state["log_share"][component].item(), rtol=1e-9)


def test_the_machine_has_one_direction_more_for_the_mean() -> None:
    _, state = rounds(two_kinds(50, 6, seed=1), Maximisation(2, 1, 2))
    machine = ExpectationMaximisation().machine(state)
    assert machine.loadings.shape == (2, 6, 2)
    assert (machine.loadings[:, :, 1] == state["level"].float()).all()
    again = machine.of(machine.parameters)
    assert all((again.parameters[name] == value).all() for name, value in machine.parameters.items())


def test_too_few_patches_are_refused() -> None:
    with refused(TrainingError, "components"):
        Maximisation(4, 2, 1).begin(two_kinds(3, 6, seed=0), seeded(0))
    with refused(TrainingError, "hidden"):
        Maximisation(2, 5, 1).begin(two_kinds(30, 6, seed=0), seeded(0))
