"""Machines with several hidden layers: files, samples, modes, and restoring."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from directions import some_images
from machines import brute_force, random_deep, seeded, with_weights
from priors import random_deep_prior

from restore.channels import BitFlip
from restore.inference.torch_engine import Engine
from restore.learning.finish import own_modes
from restore.priors import LayeredPrior
from restore.priors.bits import unpack
from restore.solvers import TAP
from restore.units import Bernoulli
from restore.zoo.inference import Inference

depths = pytest.mark.parametrize("sizes", [(5, 4, 3), (4, 3, 3, 2)], ids=["two-hidden-layers", "three"])


def test_sweeps_leave_the_distribution_as_it_is() -> None:
    machine, count = random_deep(3, 3, 2, 2, scale=0.8), 40_000
    sizes = [layer.size for layer in machine.layers]
    truth = brute_force(machine)
    drawn = torch.multinomial(torch.from_numpy(truth.probabilities), count, replacement=True, generator=seeded(1))
    states = torch.from_numpy(truth.states)[drawn].split(sizes, 1)
    after = machine.sweep(states, seeded(2))
    assert all(not torch.equal(old, new) for old, new in zip(states, after, strict=True))
    for old, new in pairwise(after):
        pairs = old.T @ new / count
        layer = next(index for index, value in enumerate(after) if value is old)
        torch.testing.assert_close(pairs, torch.from_numpy(truth.pairs[layer]), rtol=0, atol=5 * 0.5 / count**0.5)


def test_own_modes_are_where_the_machine_has_its_mass() -> None:
    # Two opposite images, which both hidden layers tell apart.
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    upward, top = 1.5 * sign[:, None].expand(6, 4), 1.5 * torch.ones(4, 3)
    biases = [-upward.sum(1) / 2, -upward.sum(0) / 2 - top.sum(1) / 2, -top.sum(0) / 2]
    machine = LayeredPrior(tuple(Bernoulli(bias) for bias in biases), (upward, top))
    noise = torch.bernoulli(torch.full((50, 6), 0.5), generator=seeded())
    modes = unpack(own_modes(machine, noise, Inference(damping=0.3, modes=40), seeded(3)), 6)
    results = {tuple(mode) for mode in modes.int().tolist()}
    assert results == {(1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1)}


@depths
def test_restoring_weak_machines_is_exact(sizes: tuple[int, ...]) -> None:
    prior = random_deep_prior((1, sizes[0]), sizes[1], sizes[2:])
    machine = with_weights(random_deep(*sizes), 0.15)
    prior = replace(
        prior,
        machine=machine.to(torch.float32),
        description=replace(prior.description, inference=replace(prior.description.inference, tol=1e-6)),
    )
    image = some_images(1, sizes[0])
    restored = Engine.of(prior, torch.device("cpu")).restore(image.float(), BitFlip(0.2))
    truth = brute_force(machine.tilt(BitFlip(0.2).evidence(image)))
    for layer, means in enumerate(restored.means):
        np.testing.assert_allclose(means[0], truth.means[layer], atol=2e-3)
    tilted = prior.machine.tilt(BitFlip(0.2).evidence(image.float()))
    assert float(TAP(tol=1e-6).solve(tilted).log_partition) == pytest.approx(truth.log_partition, abs=2e-3)
