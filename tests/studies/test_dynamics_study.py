"""The study of training: what it measures, what it keeps and goes on from, its table and its pictures."""

from __future__ import annotations

import dynamics_measure as measure
import pytest
import torch
from machines import random_machine, seeded, two_patterns, with_weights
from oracle import log_likelihood
from probing.solutions import tap_solutions
from tap_likelihood import log_weights

# --- what is measured ---


def test_the_likelihood_of_units_without_couplings_is_exact() -> None:
    machine = with_weights(random_machine(("spiked-truncated", 4), ("bernoulli", 3)), 0.0)
    images = torch.rand(30, 4, generator=seeded(), dtype=torch.float64)
    wanted = log_likelihood(machine, images) / 7
    found = measure.per_unit(machine, images, tap_solutions(machine, images))
    assert found.mean == pytest.approx(float(wanted.mean()), abs=1e-6)
    assert found.standard_error == pytest.approx(float(wanted.std()) / 30**0.5, rel=1e-6)
    assert (found.n, found.unfinished) == (30, 0)


def test_every_solution_counts_once_whatever_its_basin() -> None:
    machine, patterns = two_patterns(tilt=-0.1)
    solutions = tap_solutions(machine, patterns[[0, 0, 0, 1]])
    assert solutions.basins.tolist() in ([3, 1], [1, 3])
    log_z = float(solutions.log_partition[0] + solutions.log_partition[1]) / 2
    units = sum(layer.size for layer in machine.layers)
    found = measure.per_unit(machine, patterns, solutions)
    assert found.mean == pytest.approx((float(log_weights(machine, patterns).values.mean()) - log_z) / units)


# --- what is kept ---
