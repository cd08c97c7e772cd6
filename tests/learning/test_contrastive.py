"""Contrastive divergence: chains at the distribution give the exact gradient, and chains from the data forget it."""

from __future__ import annotations

import math

import pytest
import torch
from directions import assert_close, some_images
from machines import random_rbm, seeded
from oracle import binary_states, log_likelihood, log_likelihood_gradient

from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.priors import RBM


@pytest.mark.parametrize("steps", [1, 3])
def test_persistent_chains_at_the_distribution_give_the_exact_gradient(steps: int) -> None:
    machine, images, count = random_rbm(5, 4, scale=1.2), some_images(7, 5), 100_000
    states = binary_states(5, machine.weights)
    drawn = torch.multinomial(log_likelihood(machine, states).exp(), count, replacement=True, generator=seeded(1))
    learner = ContrastiveDivergence(starts="persistent", chains=count, steps=steps, centring=False)
    # A chain rests in its hidden state.
    chains = machine.sample_hidden(states[drawn], seeded(3))
    step = learner.step(machine, images, learner.init(machine, images, seeded()) | {"chains": chains}, seeded(2))
    # Every statistic lies in [0, 1], so its standard deviation is at most 1/2.
    assert_close(step.gradient, log_likelihood_gradient(machine, images), 5 * 0.5 / math.sqrt(count))
    assert not torch.equal(step.state["chains"], chains)


def test_many_steps_of_contrastive_divergence_forget_the_data() -> None:
    machine, images = random_rbm(5, 4, scale=0.5), some_images(7, 5)
    batch = images.repeat(6000, 1)
    learner = ContrastiveDivergence(starts="data", steps=15, centring=False)
    step = learner.step(machine, batch, learner.init(machine, images, seeded()), seeded(2))
    assert_close(step.gradient, log_likelihood_gradient(machine, images), 5 * 0.5 / math.sqrt(len(batch)))


def test_chains_restart_from_the_data_or_go_on() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    restarting = ContrastiveDivergence(starts="data")
    assert "chains" not in restarting.step(machine, images, restarting.init(machine, images, seeded()), seeded()).state
    going_on = ContrastiveDivergence(starts="persistent", chains=6)
    state = going_on.init(machine, images, seeded())
    hidden = machine.hidden.size
    assert state["chains"].shape == (6, hidden)
    # Hidden units this sure show which image a chain came from.
    copying = RBM.binary(200 * torch.eye(5), torch.full((5,), -100.0), torch.full((5,), -100.0))
    seen = {tuple(image.tolist()) for image in images}
    assert all(tuple(chain.tolist()) in seen for chain in going_on.init(copying, images.float(), seeded())["chains"])
