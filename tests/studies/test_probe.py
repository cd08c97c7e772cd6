"""Probing: which solutions a prior has, and how they are counted."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded, two_patterns
from oracle import exact_moments
from probing.solutions import distinct, tap_solutions
from settling import Settling
from torch import Tensor

from restore.priors import FullyVisible
from restore.solvers import TAP
from restore.status import Status


def repelling(strength: float = 0.6, size: int = 20) -> tuple[FullyVisible, Tensor]:
    """Units that all repel each other, which jump up and down together when all move at once; and a start for it.

    It takes the more damping to settle, where every mean is a half, the more strength there is.
    """
    machine = FullyVisible.binary(-strength * (1 - torch.eye(size)), torch.full((size,), strength * (size - 1) / 2))
    return machine, torch.full((1, size), 0.9)


def flipped(patterns: Tensor, flips: int, seed: int = 0) -> Tensor:
    """Patterns with some pixels of each inverted."""
    draw = seeded(seed)
    chosen = torch.stack([torch.randperm(patterns.shape[1], generator=draw)[:flips] for _ in patterns])
    return patterns.scatter(1, chosen, 1 - patterns.gather(1, chosen))


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


# --- starts that do not settle are tried again with more damping ---


UNDAMPED = TAP(max_iter=200, damping=0.0, tol=1e-6)


@pytest.mark.parametrize(("again", "status"), [(0, Status.MAX_ITER), (1, Status.MAX_ITER), (2, Status.CONVERGED)])
def test_the_step_is_halved_until_a_start_settles(again: int, status: Status) -> None:
    machine, start = repelling()
    found = Settling(UNDAMPED, again).solve(machine, start)
    assert found.status.tolist() == [status]
    # The fixed point itself: undamped, half is where every unit stays.
    assert (float((found.means[0] - 0.5).abs().max()) < 1e-5) == (status == Status.CONVERGED)
