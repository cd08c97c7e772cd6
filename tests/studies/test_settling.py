"""Starts that do not settle are tried again with more damping; those that do keep what they found."""

from __future__ import annotations

import pytest
import torch
from machines import repelling
from settling import Settling

from restore.marginals import Status
from restore.solvers import TAP

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
