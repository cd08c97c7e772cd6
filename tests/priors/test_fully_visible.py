"""Fully visible machines: both conventions, the enumeration, sampling, and what the solvers make of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force, random_fully_visible, seeded
from oracle import binary_states, exact_moments, exact_samples, state_probabilities
from torch import Tensor

from restore.priors import FullyVisible
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.units import Bernoulli


def spin_scores(couplings: Tensor, bias: Tensor) -> Tensor:
    """x^T M x / 2 + b^T x of every state, in the order of `binary_states`, written out from the paper."""
    spins = 2 * binary_states(len(bias), bias) - 1
    return torch.stack([x @ couplings @ x / 2 + bias @ x for x in spins])


def as_spins(machine: FullyVisible) -> tuple[Tensor, Tensor]:
    """M and b of the same machine over spins x = 2v - 1; the inverse of `from_spins`."""
    couplings = machine.weights / 4
    return couplings, machine.visible.parameters["bias"] / 2 + couplings.sum(1)


# --- conventions ---


@settings(max_examples=30)
@given(st.integers(1, 6), st.sampled_from([0.1, 1.0, 5.0]), st.integers(0, 10_000))
def test_spins_and_bits_are_one_distribution(size: int, scale: float, seed: int) -> None:
    draw = seeded(seed)
    upper = torch.randn(size, size, generator=draw, dtype=torch.float64).triu(1)
    couplings, bias = scale * (upper + upper.T), scale * torch.randn(size, generator=draw, dtype=torch.float64)
    machine = FullyVisible.from_spins(couplings, bias)
    scores = spin_scores(couplings, bias)
    _, probabilities = state_probabilities(machine)
    torch.testing.assert_close(probabilities, torch.softmax(scores, 0), rtol=0, atol=1e-13)
    constant = couplings.sum() / 2 - bias.sum()
    log_partition = exact_moments(machine).log_partition + constant
    torch.testing.assert_close(log_partition, torch.logsumexp(scores, 0), rtol=1e-13, atol=1e-11)
    for back, told in zip(as_spins(machine), (couplings, bias), strict=True):
        torch.testing.assert_close(back, told, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize(
    "couplings",
    [
        torch.tensor([[0.0, 1.0], [1.1, 0.0]]),
        torch.tensor([[0.0, 1.0], [1.0, 0.1]]),
        torch.tensor([[0.0, torch.nan], [torch.nan, 0.0]]),
        torch.zeros(2, 3),
        torch.zeros(3, 3),
    ],
    ids=["asymmetric", "diagonal", "nan", "not-square", "size"],
)
def test_other_couplings_are_refused(couplings: Tensor) -> None:
    with pytest.raises(ValueError):
        FullyVisible.binary(couplings, torch.zeros(2))


def test_more_layers_are_refused() -> None:
    layers = Bernoulli(torch.zeros(2)), Bernoulli(torch.zeros(2))
    with pytest.raises(ValueError):
        FullyVisible(layers, (torch.zeros(2, 2),))


# --- enumeration ---


@pytest.mark.parametrize("size", [1, 2, 7])
def test_exact_moments_are_those_of_all_states(size: int) -> None:
    machine = random_fully_visible(size)
    exact, truth = exact_moments(machine), brute_force(machine)
    assert float(exact.log_partition) == pytest.approx(truth.log_partition, abs=1e-12)
    np.testing.assert_allclose(exact.visible, truth.means[0], atol=1e-13)
    np.testing.assert_allclose(exact.pairs, truth.pairs[0], atol=1e-13)
    assert exact.hidden.shape == (0,)


# --- sampling ---


def frequencies(samples: Tensor) -> Tensor:
    codes = (samples.long() << torch.arange(samples.shape[1])).sum(1)
    return torch.bincount(codes, minlength=2 ** samples.shape[1]) / len(samples)


def chi_square(samples: Tensor, probabilities: Tensor) -> float:
    """Pearson's statistic over its degrees of freedom."""
    expected = probabilities * len(samples)
    return float(((frequencies(samples) * len(samples) - expected) ** 2 / expected).sum()) / (len(expected) - 1)


def test_exact_samples_have_the_enumerated_frequencies() -> None:
    machine = random_fully_visible(4)
    _, probabilities = state_probabilities(machine)
    samples = exact_samples(machine, 40_000, seeded(3))
    # 15 degrees of freedom: above 2.5 in one of a thousand runs.
    assert chi_square(samples, probabilities) < 2.5


def test_gibbs_sampling_reaches_the_distribution() -> None:
    machine = random_fully_visible(4)
    _, probabilities = state_probabilities(machine)
    samples = gibbs_steps(machine, torch.zeros(40_000, 4, dtype=torch.float64), 60, seeded(6))
    assert chi_square(samples, probabilities) < 2.5
