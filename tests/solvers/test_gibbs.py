"""Gibbs sampling: its chains stay in the exact distribution, and find it."""

from __future__ import annotations

import math

import pytest
import torch
from machines import random_evidence, random_rbm, seeded
from scipy import stats
from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.marginals import Status
from restore.priors import RBM
from restore.priors.exact import binary_states, exact_moments
from restore.solvers import Gibbs
from restore.solvers.samplers.gibbs import _averages, gibbs_steps


def exact_samples(machine: RBM, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Visible states drawn from the exact distribution; and all states with their probabilities."""
    states = binary_states(machine.visible.size, machine.weights)
    probability = torch.softmax(-machine.free_energy(states), 0)
    return states[torch.multinomial(probability, count, replacement=True, generator=generator)], states, probability


@pytest.mark.parametrize("tilted", [False, True], ids=["prior", "posterior"])
def test_chains_started_at_the_distribution_stay_there(tilted: bool) -> None:
    machine = random_rbm(4, 3, scale=1.5)
    if tilted:
        machine = machine.tilt(Fields(torch.tensor([1.0, -2.0, 0.5, 0.0]).double()))
    count, generator = 40_000, seeded(1)
    chains, _, probability = exact_samples(machine, count, generator)
    for _ in range(3):
        chains = gibbs_steps(machine, chains, 2, generator)
        codes = (chains.long() << torch.arange(4)).sum(-1)
        seen = torch.bincount(codes, minlength=16).double()
        statistic = float(((seen - count * probability) ** 2 / (count * probability)).sum())
        # One in a million such tests fails by chance.
        assert statistic <= stats.chi2.ppf(1 - 1e-6, 15)


def test_gibbs_finds_the_posterior_from_anywhere() -> None:
    machine = random_rbm(6, 4, scale=0.5).tilt(random_evidence(3, 6, seed=3))
    exact = exact_moments(machine)
    solution = Gibbs(burn_in=50, samples=4000).solve(machine, torch.zeros(3, 6).double(), seeded(2))
    # At these weights a chain forgets within a few sweeps: at least 400 independent samples of variance at most 1/4.
    torch.testing.assert_close(solution.means[0], exact.visible, rtol=0, atol=5 * 0.5 / math.sqrt(400))
    torch.testing.assert_close(solution.means[1], exact.hidden, rtol=0, atol=5 * 0.5 / math.sqrt(400))
    for mean, variance in zip(solution.means, solution.variances, strict=True):
        torch.testing.assert_close(variance, mean * (1 - mean))
    assert solution.status.tolist() == [Status.CONVERGED] * 3
    assert solution.iterations.tolist() == [4050] * 3
    assert bool(solution.log_partition.isnan().all())


def test_gibbs_says_when_the_halves_of_a_chain_disagree() -> None:
    machine = random_rbm(5, 4)
    solution = Gibbs(burn_in=0, samples=5, tol=1e-6).solve(machine, torch.zeros(2, 5).double(), seeded(1))
    assert solution.status.tolist() == [Status.MAX_ITER] * 2
    assert bool((solution.residual > 1e-6).all())


def test_every_sweep_of_a_chain_counts_alike() -> None:
    machine, start = random_rbm(5, 4), torch.zeros(2, 5).double()
    _, (visible, hidden, *_) = _averages(machine, start, 3, seeded(2))
    found = Gibbs(burn_in=0, samples=3).solve(machine, start, seeded(2))
    torch.testing.assert_close(found.means, (visible, hidden), rtol=0, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"burn_in": -1}, {"samples": 1}], ids=str)
def test_impossible_chains_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Gibbs(**wrong)
