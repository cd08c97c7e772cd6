"""Gibbs sampling: its chains stay in the exact distribution, and find it."""

from __future__ import annotations

import math

import pytest
import torch
from machines import random_evidence, random_rbm, seeded
from oracle import binary_states, exact_moments
from scipy import stats
from torch import Tensor

from restore.fields import Fields
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps


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


def test_chains_find_the_posterior_from_anywhere() -> None:
    machine, generator = random_rbm(6, 4, scale=0.5).tilt(random_evidence(3, 6, seed=3)), seeded(2)
    exact = exact_moments(machine)
    # At these weights a chain forgets within a few sweeps: at least 400 independent samples of variance at most 1/4.
    visible, total = gibbs_steps(machine, torch.zeros(3, 6).double(), 50, generator), torch.zeros(3, 6).double()
    for _ in range(4000):
        visible = gibbs_steps(machine, visible, 1, generator)
        total += visible
    torch.testing.assert_close(total / 4000, exact.visible, rtol=0, atol=5 * 0.5 / math.sqrt(400))
