"""Mixtures of Gaussians: their posterior against sums over densities, and how it is computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from scipy.stats import multivariate_normal

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import GaussianMixture
from restore.priors.mixture import CENTRE, whitened
from restore.solvers.exact import Exact
from restore.status import Status


def some_mixture(components: int, pixels: int, rank: int, seed: int) -> GaussianMixture:
    draw = seeded(seed)
    loadings = 0.4 * torch.randn(components, pixels, rank, generator=draw)
    noise = 0.01 + 0.1 * torch.rand(components, generator=draw)
    share = torch.randn(components, generator=draw).log_softmax(0)
    return GaussianMixture(loadings, noise, share).to(torch.float64)


def covariances(mixture: GaussianMixture) -> np.ndarray:
    loadings, noise = mixture.loadings.numpy(), mixture.noise.numpy()
    return loadings @ loadings.swapaxes(1, 2) + noise[:, None, None] * np.eye(loadings.shape[1])


@settings(max_examples=30, deadline=None)
@given(components=st.integers(1, 4), pixels=st.integers(1, 6), rank=st.integers(1, 4), seed=st.integers(0, 999))
def test_the_posterior_is_that_of_the_visible_pixels_by_the_rules_of_normal_distributions(
    components: int, pixels: int, rank: int, seed: int
) -> None:
    mixture, draw = some_mixture(components, pixels, rank, seed), np.random.default_rng(seed)
    seen, sigma = draw.random((3, pixels)), draw.uniform(0.01, 0.5, pixels)
    visible = draw.random(pixels) < 0.7
    precision = np.where(visible, sigma**-2, 0)
    fields = Fields(torch.from_numpy(seen * precision), torch.from_numpy(precision[None]))
    mean, variance, log_partition = mixture.tilt(fields).posterior()
    # Condition each component on what was seen: y = x + noise at the visible pixels.
    weights, means, variances = [], [], []
    for log_share, covariance in zip(mixture.log_share.numpy(), covariances(mixture), strict=True):
        across = covariance[:, visible]
        around = across[visible] + np.diag(sigma[visible] ** 2)
        gain = np.linalg.solve(around, across.T).T
        density = multivariate_normal(np.full(visible.sum(), CENTRE), around).logpdf if visible.any() else np.zeros_like
        weights.append(log_share + (density(seen[:, visible]) if visible.any() else np.zeros(3)))
        means.append(CENTRE + (seen[:, visible] - CENTRE) @ gain.T)
        variances.append(np.diag(covariance - gain @ across.T))
    total = np.logaddexp.reduce(weights, 0)
    share = np.exp(np.array(weights) - total)[..., None]
    expected = (share * means).sum(0)
    second = (share * (np.array(variances)[:, None] + np.array(means) ** 2)).sum(0)
    np.testing.assert_allclose(mean.numpy(), expected, atol=1e-7)
    np.testing.assert_allclose(variance.numpy(), second - expected**2, atol=1e-7)
    # log Z is log p(y) less log p(y | x = 0), which channels add.
    black = -((seen / sigma) ** 2) / 2 - np.log(sigma * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(log_partition.numpy() + black[:, visible].sum(1), total, atol=1e-6)


def test_patches_with_different_noise_are_restored_as_if_alone() -> None:
    mixture, draw = some_mixture(3, 4, 2, seed=1), seeded(5)
    precision = torch.tensor([[100.0, 100, 100, 100], [4, 0, 4, 4], [100, 100, 100, 100]]).double()
    fields = Fields(torch.rand(3, 4, generator=draw).double() * precision, precision)
    together = mixture.tilt(fields).posterior()
    for row in range(3):
        alone = mixture.tilt(Fields(fields.linear[row : row + 1], precision[row : row + 1])).posterior()
        for whole, part in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[row], part[0])


@settings(max_examples=30, deadline=None)
@given(rank=st.integers(1, 5), seed=st.integers(0, 999))
def test_axes_are_whitened(rank: int, seed: int) -> None:
    draw = seeded(seed)
    loadings = torch.randn(2, 6, rank, generator=draw).double()
    trust = 10 * torch.rand(2, 6, generator=draw).double()
    axes, log_determinant = whitened(loadings, trust)
    square = torch.eye(rank).double() + loadings.mT @ (trust[:, :, None] * loadings)
    torch.testing.assert_close(axes.mT @ axes, loadings @ torch.linalg.inv(square) @ loadings.mT)
    torch.testing.assert_close(log_determinant, torch.logdet(square))


def test_the_exact_solver_tells_what_is_no_number_and_takes_no_start() -> None:
    mixture = some_mixture(2, 3, 1, seed=0)
    precision = torch.ones(1, 3).double()
    solution = Exact().solve(
        mixture.tilt(Fields(torch.tensor([[0.1, 0.2, 0.3], [0.1, torch.inf, 0.3]]).double(), precision))
    )
    assert solution.status.tolist() == [Status.CONVERGED, Status.DIVERGED]
    with pytest.raises(UsageError):
        Exact().solve(mixture, torch.zeros(1, 3))
