"""Fractional RBMs against enumeration: the RBM they contain, the RBM near them, and the sampler."""

from __future__ import annotations

import math

import pytest
import torch
from fractional_rbm import FractionalRBM
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_rbm, seeded
from oracle import binary_states, log_likelihood
from torch import Tensor

from restore.priors import RBM


def probabilities(prior: FractionalRBM) -> tuple[Tensor, Tensor]:
    """Every visible state and its probability."""
    states = binary_states(prior.machine.visible.size, prior.machine.weights)
    return states, torch.softmax(-prior.free_energy(states), 0)


def fractional(seed: int = 0, low: float = 0.3, high: float = 2.6) -> FractionalRBM:
    machine = random_rbm(5, 4, scale=1.5, seed=seed)
    powers = low + (high - low) * torch.rand(4, generator=seeded(seed), dtype=torch.float64)
    return FractionalRBM(machine, powers)


def test_with_powers_of_one_it_is_the_marginal_of_the_rbm() -> None:
    machine = random_rbm(5, 4, scale=1.5)
    states, got = probabilities(FractionalRBM(machine, torch.ones(4, dtype=torch.float64)))
    torch.testing.assert_close(got.log(), log_likelihood(machine, states), rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_the_rbm_near_it_errs_by_no_more_than_proposition_3_2_says(seed: int) -> None:
    prior = fractional(seed)
    states = binary_states(5, prior.machine.weights)
    excess = prior.approximation().free_energy(states) - prior.free_energy(states)
    bound = math.log(2) * float((prior.powers.ceil() - prior.powers).sum())
    assert float(excess.max()) <= 1e-12
    assert float(excess.min()) >= -bound - 1e-12


def test_whole_powers_are_copies_of_the_unit() -> None:
    prior = FractionalRBM(random_rbm(5, 3, scale=1.5), torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64))
    near = prior.approximation()
    assert near.hidden.size == 6
    states = binary_states(5, prior.machine.weights)
    torch.testing.assert_close(near.free_energy(states), prior.free_energy(states), rtol=0, atol=1e-12)


@pytest.mark.parametrize("low,high", [(0.2, 0.9), (0.5, 2.7)])
def test_the_sampler_stays_at_the_enumerated_distribution(low: float, high: float) -> None:
    # Started exactly at p: whatever moves it beyond the noise of so many chains is an error of the sampler.
    prior = fractional(3, low, high)
    states, wanted = probabilities(prior)
    chains, draw = 200_000, seeded(1)
    start = states[torch.multinomial(wanted, chains, replacement=True, generator=draw)]
    moved, accepted = prior.metropolis_steps(start, 4, draw)
    assert 0.05 < float(accepted) < 0.999
    codes = (moved @ (2.0 ** torch.arange(5, dtype=torch.float64))).long()
    found = torch.bincount(codes, minlength=32).double() / chains
    excess = (found - wanted) / (wanted * (1 - wanted) / chains).sqrt()
    assert float(excess.abs().max()) < 4.5


def mean_log_likelihood(prior: FractionalRBM, images: Tensor) -> Tensor:
    """By enumeration."""
    states = binary_states(prior.machine.visible.size, prior.machine.weights)
    return -prior.free_energy(images).mean() - torch.logsumexp(-prior.free_energy(states), 0)


def test_the_gradient_in_alpha_is_that_of_finite_differences() -> None:
    prior = fractional(7)
    images = torch.bernoulli(torch.full((20, 5), 0.6, dtype=torch.float64), generator=seeded(2))
    states, probability = probabilities(prior)
    # With q fixed all powers grow in proportion to alpha.
    alpha = float(prior.powers.sum())
    shares = prior.powers / alpha
    gradient = float((prior.softplus(images).mean(0) - probability @ prior.softplus(states)) @ shares)
    step = 1e-5
    above, below = (
        float(mean_log_likelihood(FractionalRBM(prior.machine, (alpha + change) * shares), images))
        for change in (step, -step)
    )
    assert gradient == pytest.approx((above - below) / (2 * step), abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_the_likelihood_is_concave_in_q_and_b_jointly_and_in_alpha(seed: int) -> None:
    """Prop. 3.1, for the units that both ends of a segment have, with any shares and biases."""
    draw = seeded(seed)
    one, other = random_rbm(5, 3, scale=1.5, seed=seed), random_rbm(5, 3, scale=1.5, seed=seed + 1)
    weights = torch.cat([one.weights, other.weights], 1)
    hidden = torch.cat([one.hidden.parameters["bias"], other.hidden.parameters["bias"]])
    images = torch.bernoulli(torch.full((20, 5), 0.6, dtype=torch.float64), generator=draw)

    def value(q: Tensor, bias: Tensor, alpha: float) -> float:
        return float(mean_log_likelihood(FractionalRBM(RBM.binary(weights, bias, hidden), alpha * q), images))

    def ends() -> tuple[Tensor, Tensor, float]:
        q = torch.softmax(2 * torch.randn(6, generator=draw, dtype=torch.float64), 0)
        bias = 2 * torch.randn(5, generator=draw, dtype=torch.float64)
        return q, bias, 6 * float(torch.rand((), generator=draw, dtype=torch.float64)) + 0.1

    (q, bias, alpha), (last_q, last_bias, last_alpha) = ends(), ends()
    middle = value((q + last_q) / 2, (bias + last_bias) / 2, alpha)
    assert middle >= (value(q, bias, alpha) + value(last_q, last_bias, alpha)) / 2 - 1e-12
    between = value(q, bias, (alpha + last_alpha) / 2)
    assert between >= (value(q, bias, alpha) + value(q, bias, last_alpha)) / 2 - 1e-12
