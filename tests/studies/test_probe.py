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
from probing.solutions import PROBING, Solutions, distinct, tap_solutions
from probing.verdict import alone, share, verdict, warnings
from settling import Settling
from tap_likelihood import log_weights
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


def test_units_without_couplings_have_one_solution() -> None:
    bias = torch.randn(6, generator=seeded())
    machine = RBM.binary(torch.zeros(6, 3), bias, torch.zeros(3))
    found = tap_solutions(machine, torch.rand(20, 6, generator=seeded()).round())
    assert found.count == 1 and found.basins.tolist() == [20]
    expected = -float(torch.log1p(bias.double().exp()).sum()) - 3 * np.log(2)
    assert found.helmholtz == pytest.approx(expected, abs=1e-5)
    assert "no modes" in verdict(found) and share(found) == 1 / 20
    # Another start might have led elsewhere.
    single = tap_solutions(machine, torch.ones(1, 6))
    assert single.count == 1 and verdict(single).endswith("too few starts to tell")


def summary(found: Solutions) -> list[tuple[float, int]]:
    return list(zip(found.free_energies.tolist(), found.basins.tolist(), strict=True))


@pytest.fixture(scope="module")
def rough() -> tuple[RBM, Tensor]:
    """A machine with several solutions of unequal depth, and starts that lead to them."""
    machine, patterns = memories(5, 32)
    bias = Fields(0.3 * torch.randn(32, generator=seeded(4), dtype=torch.float64))
    chosen = torch.randint(5, (60,), generator=seeded(5))
    return machine.tilt(bias), flipped(patterns[chosen], 1)


def test_the_order_of_starts_decides_nothing(rough: tuple[RBM, Tensor]) -> None:
    machine, starts = rough
    order = torch.randperm(len(starts), generator=seeded(6))
    one, two = tap_solutions(machine, starts), tap_solutions(machine, starts[order])
    assert one.count > 3
    np.testing.assert_allclose(summary(one), summary(two), atol=1e-4)
    assert torch.equal(one.led_to[order], two.led_to)


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


# ---------------------------------------------------------------------------------------------------------- verdict


def test_a_machine_that_holds_its_images_is_memorising() -> None:
    machine, patterns = memories()
    found = tap_solutions(machine, patterns)
    assert found.count == found.converged == 120 and set(found.basins.tolist()) == {1}
    assert torch.equal((found.means[0] > 0.5).double()[found.led_to], patterns)
    for few in (verdict(found), warnings(found)[0]):
        assert "memorising, or more modes than 120 starts can tell" in few
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probing.verdict.MANY", 120)
        assert "memorising, or a rough landscape" in verdict(found)
    # The same modes reached from several starts each are memories that starts share.
    shared = tap_solutions(machine, torch.cat([flipped(patterns, 1, seed) for seed in range(3)]))
    assert shared.count == 120 and share(shared) == pytest.approx(1 / 3)
    assert alone(shared) == 0 and alone(found) == 120
    assert warnings(shared) == () and "share" in verdict(shared)


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


def test_only_what_has_not_settled_is_tried_again() -> None:
    machine, start = repelling()
    mixed = torch.cat([torch.full((1, 20), 0.5), start, torch.full((1, 20), torch.nan)])
    first, found = UNDAMPED.solve(machine, mixed), Settling(UNDAMPED).solve(machine, mixed)
    assert first.status.tolist() == [Status.CONVERGED, Status.MAX_ITER, Status.DIVERGED]
    assert found.status.tolist() == [Status.CONVERGED, Status.CONVERGED, Status.DIVERGED]
    assert torch.equal(found.means[0][0], first.means[0][0]) and found.iterations[0] == first.iterations[0]
    alone = Settling(UNDAMPED).solve(machine, start)
    torch.testing.assert_close(found.means[0][1], alone.means[0][0], rtol=0, atol=1e-4)
    assert float(found.log_partition[1]) == pytest.approx(float(alone.log_partition[0]), abs=1e-4)


# --- likelihoods along a training, by the solutions of TAP ---


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
