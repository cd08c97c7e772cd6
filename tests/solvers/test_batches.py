"""Batches of images in any precision, and the verdict on each."""

from __future__ import annotations

import math

import pytest
import torch
from machines import halves, random_evidence, random_rbm, seeded

from restore.channels import BitFlip
from restore.fields import Fields
from restore.solvers import TAP, AdaptiveTAP, MeanField, RelaxedBeliefPropagation
from restore.solvers.solution import concatenate
from restore.status import Status


@pytest.mark.parametrize("kind", [MeanField, TAP, RelaxedBeliefPropagation, AdaptiveTAP])
def test_certain_pixels_stay_and_the_others_are_conditioned_on_them(kind: type) -> None:
    machine = random_rbm(10, 6, scale=0.3).to(torch.float32)
    image = (torch.arange(10) % 2).float()[None]
    solution = kind().solve(machine.tilt(BitFlip(0.0).evidence(image)), image)
    assert torch.equal(solution.means[0], image)
    assert solution.variances[0].abs().max() == 0
    hidden, _ = machine.hidden.moments(machine.hidden_fields(image))
    torch.testing.assert_close(solution.means[1], hidden)
    assert solution.log_partition.dtype == torch.float64
    # With the image known there is nothing left to approximate.
    weight = -machine.tilt(BitFlip(0.0).evidence(image)).to(torch.float64).free_energy(image.double())
    torch.testing.assert_close(solution.log_partition, weight, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [MeanField, TAP, RelaxedBeliefPropagation])
@pytest.mark.parametrize("where", ["evidence", "start"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_image_that_is_not_finite_diverges_alone(kind: type, where: str, value: float) -> None:
    machine = random_rbm(6, 5, scale=0.5)
    linear = torch.randn(4, 6, generator=seeded(1), dtype=torch.float64)
    start = halves(machine, 4)
    solver = kind(max_iter=300, tol=1e-9)
    good = solver.solve(machine.tilt(Fields(linear)), start)
    broken_linear, broken_start = linear.clone(), start.clone()
    (broken_linear if where == "evidence" else broken_start)[1, 2] = value
    got = solver.solve(machine.tilt(Fields(broken_linear)), broken_start)
    if where == "evidence" and value == math.inf and kind is not RelaxedBeliefPropagation:
        # An infinite field is a certain pixel; only log Z has no number then.
        assert int(got.status[1]) == Status.CONVERGED
        assert float(got.means[0][1, 2]) == pytest.approx(1, abs=1e-8)
        assert not bool(torch.isfinite(got.log_partition[1]))
    else:
        assert int(got.status[1]) == Status.DIVERGED
        assert kind is RelaxedBeliefPropagation or int(got.iterations[1]) == 1
    for row in (0, 2, 3):
        assert int(got.status[row]) == Status.CONVERGED
        torch.testing.assert_close(got.means[0][row], good.means[0][row], rtol=0, atol=1e-8)


def test_batches_are_put_together_in_order() -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(random_evidence(5, 6))
    solver = TAP(tol=1e-10)
    whole = solver.solve(machine, halves(machine, 5))
    parts = concatenate(
        [
            solver.solve(machine.rows(torch.arange(first, last)), halves(machine, last - first))
            for first, last in ((0, 2), (2, 5))
        ]
    )
    torch.testing.assert_close(parts.means[0], whole.means[0])
    assert torch.equal(parts.iterations, whole.iterations)
