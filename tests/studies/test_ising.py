"""The Ising field: what its solver says of it, against exact sums over all states; and its coupling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ising import (
    CORNER,
    LONGEST,
    best_coupling,
    ising,
    log_partition,
    neighbours,
    prior_of,
)
from scipy.special import logsumexp
from torch import Tensor

from restore.channels import BitFlip
from restore.errors import UsageError
from restore.fields import Fields
from restore.inference.damage import Damage
from restore.inference.torch_engine import Engine
from restore.priors.exact import exact_moments
from restore.solvers import TAP
from restore.zoo.description import Description


def transferred(coupling: float, fields: Tensor) -> float:
    """log Z of the field under log-odds (H, W), row by row: a sum over all states of a row, given the row before."""
    width = fields.shape[1]
    bits = (np.arange(2**width)[:, None] >> np.arange(width)) & 1
    spins = 2.0 * bits - 1
    within = coupling * (spins[:, 1:] * spins[:, :-1]).sum(1)
    between = spins @ spins.T + CORNER * (spins[:, 1:] @ spins[:, :-1].T + spins[:, :-1] @ spins[:, 1:].T)
    log_sum = np.zeros(len(bits))
    for row, field in enumerate(fields.double().numpy()):
        before = logsumexp(coupling * between + log_sum, axis=1) if row else log_sum
        log_sum = before + within + bits @ field
    return float(logsumexp(log_sum)) - of_bits(coupling, *fields.shape)


def of_bits(coupling: float, height: int, width: int) -> float:
    """log Z of spins minus that of bits, as `FullyVisible.from_spins` gives it."""
    return coupling * float(neighbours(height, width).sum()) / 2


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (1, 6), (6, 1), (3, 5)])
@pytest.mark.parametrize("coupling", [0.0, 0.2, 0.5])
def test_log_z_of_pixels_that_join_one_by_one_is_the_sum_over_all_states(
    coupling: float, shape: tuple[int, int]
) -> None:
    exact = exact_moments(ising(coupling, *shape).to(torch.float64)).log_partition
    assert log_partition(coupling, *shape) == pytest.approx(float(exact), abs=1e-4)


def test_the_sum_over_rows_is_the_sum_over_all_states() -> None:
    fields = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    exact = exact_moments(ising(0.3, 4, 4).tilt(Fields(fields.reshape(1, -1))))
    assert transferred(0.3, fields) == pytest.approx(float(exact.log_partition), abs=1e-4)


@pytest.mark.parametrize("coupling", [0.2, 0.272, 0.35])
def test_under_evidence_the_solver_is_within_a_hundredth_of_a_bit_per_pixel(coupling: float) -> None:
    square = torch.zeros(16, 9)
    square[4:12, 3:] = 1
    for p in (0.05, 0.1, 0.2):
        flipped = torch.rand(16, 9, generator=torch.Generator().manual_seed(0)) < p
        seen = torch.where(flipped, 1 - square, square)
        fields = BitFlip(p).evidence(seen).linear
        machine = ising(coupling, 16, 9).tilt(Fields(fields.reshape(1, -1)))
        found = TAP(max_iter=200, tol=1e-3, damping=0.5).solve(machine, seen.reshape(1, -1))
        assert abs(float(found.log_partition) - transferred(coupling, fields)) < 0.01 * np.log(2) * fields.numel()


def squares(count: int) -> Tensor:
    """Squares of 3 to 6 pixels, white on black and the reverse, (count, 64)."""
    place = torch.randint(0, 5, (count, 2), generator=torch.Generator().manual_seed(0))[:, :, None]
    side = 3 + torch.arange(count)[:, None, None] % 4
    within = (torch.arange(8) >= place) & (torch.arange(8) < place + side)
    images = within[:, 0, :, None] & within[:, 1, None, :]
    return (images ^ (torch.arange(count) % 2 == 0)[:, None, None]).float().flatten(1)


def test_the_prior_restores() -> None:
    images = squares(200)
    coupling, nats = best_coupling(images, 8, torch.Generator().manual_seed(0), count=100)
    assert 0.05 < coupling < 0.5 and nats < 0
    prior = prior_of(images, (8, 8), coupling)
    header = prior.description
    # Stored in half precision.
    assert torch.allclose(prior.machine.weights, ising(coupling, 8, 8).weights, atol=1e-3)
    assert Description.from_header(header.to_header(), "here") == header
    engine = Engine(prior, torch.device("cpu"))
    flipped = torch.rand(images.shape, generator=torch.Generator().manual_seed(1)) < 0.1
    seen = torch.where(flipped, 1 - images, images).reshape(-1, 8, 8).numpy()
    found, _ = engine.marginals(seen, Damage(0.1, hidden=np.zeros(seen.shape, bool)))
    assert ((found.means[0] > 0.5) != images.numpy()).mean() < 0.8 * float(flipped.float().mean())


def test_longer_rows_are_refused() -> None:
    with pytest.raises(UsageError):
        log_partition(0.2, 2, LONGEST + 1)
