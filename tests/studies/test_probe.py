"""Probing: which solutions a prior has, how they are counted, and what is shown of them."""

from __future__ import annotations

from dataclasses import replace

import dynamics_measure as measure
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_machine, repelling, seeded, two_patterns, with_weights
from oracle import exact_moments, log_likelihood
from probing.receptive import spread
from probing.solutions import PROBING, distinct, tap_solutions
from settling import Settling
from torch import Tensor

from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import TAP
from restore.status import Status


def flipped(patterns: Tensor, flips: int, seed: int = 0) -> Tensor:
    """Patterns with some pixels of each inverted."""
    draw = seeded(seed)
    chosen = torch.stack([torch.randperm(patterns.shape[1], generator=draw)[:flips] for _ in patterns])
    return patterns.scatter(1, chosen, 1 - patterns.gather(1, chosen))


def memories(count: int = 120, size: int = 64, strength: float = 8.0) -> tuple[RBM, Tensor]:
    """A machine in which each hidden unit answers to one random pattern and holds it, and the patterns."""
    patterns = (torch.rand(count, size, generator=seeded(1)) < 0.5).double()
    weights = strength * (2 * patterns - 1).T
    # Answers to at most four wrong pixels of its own, which no other pattern comes near.
    return RBM.binary(weights, torch.zeros(size), -strength * (patterns.sum(1) - 4)).to(torch.float64), patterns


# ------------------------------------------------------------------------------------------------------ solutions


def test_two_modes_are_two_solutions_with_their_basins() -> None:
    machine, patterns = two_patterns(tilt=0.0)
    starts = flipped(patterns[[0, 1, 1, 0, 1, 1, 1, 0]], 2)
    found = tap_solutions(machine, starts)
    assert found.count == 2 and found.converged == 8
    assert torch.allclose(found.free_energies[0], found.free_energies[1], atol=1e-6)
    assert sorted(found.basins.tolist()) == [3, 5]
    modes = (found.means[0] > 0.5).double()
    assert torch.equal(modes[found.led_to], patterns[[0, 1, 1, 0, 1, 1, 1, 0]])
    # Both modes together are nearly all of the machine.
    exact = float(exact_moments(machine).log_partition)
    assert float(torch.logsumexp(found.log_partition, 0)) == pytest.approx(exact, abs=0.05)


@pytest.fixture(scope="module")
def rough() -> tuple[RBM, Tensor]:
    """A machine with several solutions of unequal depth, and starts that lead to them."""
    machine, patterns = memories(5, 32)
    bias = Fields(0.3 * torch.randn(32, generator=seeded(4), dtype=torch.float64))
    chosen = torch.randint(5, (60,), generator=seeded(5))
    return machine.tilt(bias), flipped(patterns[chosen], 1)


def test_free_energies_are_those_of_tap(rough: tuple[RBM, Tensor]) -> None:
    machine, starts = rough
    found = tap_solutions(machine, starts)
    alone = replace(PROBING, tol=1e-9).solve(machine, starts)
    led = (found.led_to >= 0) & (alone.status == 0)
    assert led.sum() > 30 and found.count > 3
    energies = found.free_energies[found.led_to[led]]
    assert torch.allclose(energies, -alone.log_partition[led], atol=1e-5)
    assert torch.allclose(found.means[0][found.led_to[led]], alone.means[0][led], atol=5e-3)
    assert found.helmholtz == pytest.approx(float(found.free_energies.mean()))
    assert found.free_energies.tolist() == sorted(found.free_energies.tolist())


# --------------------------------------------------------------------------------------------------------- counting


@settings(max_examples=60)
@given(st.data())
def test_distinct_is_what_comparing_all_pairs_gives(data: st.DataObject) -> None:
    # Clusters far apart, points of one close together.
    place = st.integers(0, 3)
    clusters = data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=12))
    jitter = torch.rand(len(clusters), 2, generator=seeded(data.draw(st.integers(0, 99))))
    points = torch.tensor(clusters, dtype=torch.float64) + 0.01 * jitter
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probing.solutions.COMPARED", data.draw(st.integers(1, 5)))
        index, led_to = distinct(points, 0.05)
    assert index.tolist() == sorted({clusters.index(cluster) for cluster in clusters})
    assert [clusters[index[to]] for to in led_to] == clusters


# -------------------------------------------------------------------------------------------------- receptive fields


def test_spread_ranks_by_shape_and_not_by_size() -> None:
    even, single = torch.ones(1, 50), torch.eye(50)[:1]
    fields = torch.cat([even, 1e-4 * even, -even, single, 1e6 * single, torch.zeros(1, 50)])
    found = spread(fields)
    torch.testing.assert_close(found[:3], torch.ones(3, dtype=torch.float64))
    assert found[3] == pytest.approx(50.0**-9.5) and found[4] == pytest.approx(50.0**-9.5)
    assert found[5] == 0
    random = torch.randn(7, 30, generator=seeded(), dtype=torch.float64).numpy()
    direct = (np.abs(random) ** 0.1).mean(1) ** 10 / np.sqrt((random**2).mean(1))
    np.testing.assert_allclose(spread(torch.from_numpy(random)), direct, rtol=1e-12)
    assert ((direct > 0) & (direct < 1)).all()


# --- starts that do not settle are tried again with more damping ---


UNDAMPED = TAP(max_iter=200, damping=0.0, tol=1e-6)


@pytest.mark.parametrize(("again", "status"), [(0, Status.MAX_ITER), (1, Status.MAX_ITER), (2, Status.CONVERGED)])
def test_the_step_is_halved_until_a_start_settles(again: int, status: Status) -> None:
    machine, start = repelling()
    found = Settling(UNDAMPED, again).solve(machine, start)
    assert found.status.tolist() == [status]
    # The fixed point itself: undamped, half is where every unit stays.
    assert (float((found.means[0] - 0.5).abs().max()) < 1e-5) == (status == Status.CONVERGED)


# --- what is measured ---


def test_the_likelihood_of_units_without_couplings_is_exact() -> None:
    machine = with_weights(random_machine(("spiked-truncated", 4), ("bernoulli", 3)), 0.0)
    images = torch.rand(30, 4, generator=seeded(), dtype=torch.float64)
    wanted = log_likelihood(machine, images) / 7
    found = measure.per_unit(machine, images, tap_solutions(machine, images))
    assert found.mean == pytest.approx(float(wanted.mean()), abs=1e-6)
    assert found.standard_error == pytest.approx(float(wanted.std()) / 30**0.5, rel=1e-6)
    assert (found.n, found.unfinished) == (30, 0)
