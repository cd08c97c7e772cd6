"""TAP likelihoods of machines of units of any kind, one hidden layer or several, against every joint state."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from machines import brute_force, random_fully_visible, random_machine, seeded, two_patterns, values_of, with_weights
from mean_likelihoods import exact_likelihood
from tap_likelihood import log_weights, tap_likelihood
from torch import Tensor

from restore.priors import RBM, BoltzmannMachine
from restore.solvers import TAP


def four_modes(pixels: int = 40, hidden: int = 16, strength: float = 0.4) -> tuple[RBM, Tensor]:
    """A machine of two patterns and their opposites, as in a Hopfield network, and those (4, pixels).

    Random biases of the pixels make one mode e^2 times as probable as another. There are many weak couplings.
    """
    generator = seeded(1)
    signs = [torch.randn(2, size, generator=generator).sign().double() for size in (pixels, hidden)]
    weights = strength * signs[0].T @ signs[1]
    bias = 0.15 * torch.randn(pixels, generator=generator, dtype=torch.float64)
    machine = RBM.binary(weights, bias - weights.sum(1) / 2, -weights.sum(0) / 2)
    return machine, (1 + torch.cat([signs[0], -signs[0]])) / 2


PRECISE = TAP(max_iter=5000, tol=1e-13, damping=0.3)
NODES = 10

MACHINES = {
    "bernoulli-bernoulli": random_machine(("bernoulli", 4), ("bernoulli", 3)),
    "bernoulli-spin": random_machine(("bernoulli", 3), ("spin", 3), seed=1),
    "bernoulli-gaussian": random_machine(("bernoulli", 3), ("gaussian", 2), seed=2, scale=0.3),
    "bernoulli-truncated": random_machine(("bernoulli", 3), ("truncated", 2), seed=3),
    "bernoulli-spiked-gaussian": random_machine(("bernoulli", 3), ("spiked-gaussian", 2), seed=4, scale=0.3),
    "truncated-bernoulli": random_machine(("truncated", 2), ("bernoulli", 3), seed=5),
    "truncated-gaussian": random_machine(("truncated", 2), ("gaussian", 2), seed=6, scale=0.3),
    "spiked-truncated-bernoulli": random_machine(("spiked-truncated", 2), ("bernoulli", 3), seed=7),
    "spiked-truncated-symmetric": random_machine(("spiked-truncated", 2), ("symmetric", 2), seed=8),
    "bernoulli, 2 layers": random_machine(("bernoulli", 3), ("bernoulli", 3), ("bernoulli", 2), seed=9),
    "spiked-truncated, 2 layers": random_machine(("spiked-truncated", 2), ("bernoulli", 3), ("bernoulli", 2), seed=10),
    "truncated, 3 layers": random_machine(("truncated", 2), ("spin", 2), ("bernoulli", 2), ("bernoulli", 2), seed=11),
    "fully visible": random_fully_visible(6, scale=0.3),
}
every_machine = pytest.mark.parametrize("name", MACHINES)


def truth(machine: BoltzmannMachine) -> tuple[Tensor, Tensor]:
    """Images whose pixels are all values that a unit has in `brute_force`, (N, D), and log p of each, (N,).

    Probabilities of such values become densities by the measure of each.
    """
    found = brute_force(machine, nodes=NODES)
    size = machine.layers[0].size
    images, place = np.unique(found.states[:, :size], axis=0, return_inverse=True)
    values, measures = values_of(machine.layers[0], NODES)
    measure = measures[np.abs(images[..., None] - values).argmin(-1)].sum(-1)
    return torch.from_numpy(images), torch.from_numpy(np.log(np.bincount(place.ravel(), found.probabilities)) - measure)


@cache
def weakened(name: str, factor: float) -> tuple[BoltzmannMachine, Tensor, Tensor]:
    machine = with_weights(MACHINES[name], factor)
    return machine, *truth(machine)


def found(machine: BoltzmannMachine, images: Tensor) -> Tensor:
    """log p of each image by TAP, from one start, (N,)."""
    of_all = tap_likelihood(machine, images, images[:1], PRECISE)
    assert of_all.warnings == ()
    each = log_weights(machine, images, PRECISE).values - of_all.log_partition
    assert of_all.mean == pytest.approx(float(each.mean()))
    return each


@every_machine
def test_its_error_is_of_the_third_order_in_the_weights(name: str) -> None:
    """TAP leaves out the third order of log Z, and with it that of the sum over deeper layers."""
    coarse, fine = (
        float((found(machine, images) - wanted).abs().max())
        for machine, images, wanted in (weakened(name, factor) for factor in (0.1, 0.05))
    )
    assert 1e-9 < coarse < 1e-4
    # The next orders are seen beside it; of naive mean field the second would be.
    assert math.log2(coarse / fine) > 2.5


# --- its solutions ---


def images(count: int = 40, seed: int = 0) -> Tensor:
    return (torch.rand(count, 6, generator=seeded(seed)) < 0.5).double()


def test_tap_takes_every_solution_once() -> None:
    machine, patterns = two_patterns(tilt=-0.1)
    starts = patterns[[0, 0, 0, 1]]
    apart = [tap_likelihood(machine, patterns, patterns[[index]]).log_partition for index in (0, 1)]
    assert abs(apart[0] - apart[1]) > 0.5
    found = tap_likelihood(machine, patterns, starts)
    assert dict(found.details)["solutions"] == 2
    assert found.log_partition == pytest.approx((apart[0] + apart[1]) / 2)
    assert found.log_partition_error == pytest.approx(abs(apart[0] - apart[1]) / 2)
    assert found.mean == pytest.approx(float(-machine.free_energy(patterns).mean()) - found.log_partition)
    summed = np.logaddexp(*apart)
    assert dict(found.details)["log_partition_by_log_sum_exp"] == pytest.approx(summed)
    assert dict(found.details)["mean_by_log_sum_exp"] - found.mean == pytest.approx(found.log_partition - summed)


def test_the_sum_over_modes_is_near_the_truth_and_their_mean_is_not() -> None:
    """The mean of S values of log Z_s is at least log S below their log-sum-exp, by Jensen's inequality."""
    machine, patterns = four_modes()
    truth = exact_likelihood(machine, patterns)
    found = tap_likelihood(machine, patterns, patterns)
    assert dict(found.details)["solutions"] == 4
    # The stronger the couplings the narrower the modes, and the less TAP errs in each.
    assert dict(found.details)["mean_by_log_sum_exp"] == pytest.approx(truth.mean, abs=0.02)
    assert found.mean - truth.mean > math.log(4) - 0.02
    stronger = four_modes(strength=0.6)[0]
    error = dict(tap_likelihood(stronger, patterns, patterns).details)["mean_by_log_sum_exp"]
    assert error == pytest.approx(exact_likelihood(stronger, patterns).mean, abs=1e-3)
