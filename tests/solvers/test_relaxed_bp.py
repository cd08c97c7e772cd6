"""Relaxed belief propagation: its order against exact answers, its limit against TAP, and where it must be exact."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from machines import brute_force, gaussian_answers, gaussian_machine, random_fully_visible, random_rbm
from oracle import exact_moments

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import TAP, RelaxedBeliefPropagation
from restore.status import Status
from restore.units import Bernoulli, Gaussian

PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.3}


# --- against exact answers ---


@pytest.mark.parametrize("bias", [1.3, 0.0, -2.0])
def test_a_single_edge_errs_by_the_third_cumulant_of_its_sender(bias: float) -> None:
    field, coupling = 0.4, 2.0**-7
    machine = RBM.binary(*(torch.tensor(value).double() for value in ([[coupling]], [bias], [field])))
    solution, truth = RelaxedBeliefPropagation(**PRECISE).solve(machine), brute_force(machine)
    error = float(solution.means[1]) - truth.means[1][0]
    # log E[exp(w x h)] over x lacks w³ κ₃ h³ / 6, and h³ = h.
    share, other = (1 / (1 + math.exp(-value)) for value in (bias, field))
    third = share * (1 - share) * (1 - 2 * share)
    assert error / coupling**3 == pytest.approx(-third / 6 * other * (1 - other), abs=1e-4)


def test_log_z_of_a_known_image_is_exact() -> None:
    """Edges count from the image's side, whose third cumulants are then zero; from the other side they would not be."""
    machine = random_rbm(4, 3, scale=2.0).tilt(Fields(torch.tensor([[60.0, -60.0, 60.0, 60.0]]).double()))
    solution = RelaxedBeliefPropagation(**PRECISE).solve(machine)
    assert float(solution.log_partition) == pytest.approx(float(exact_moments(machine).log_partition), abs=1e-9)


def test_means_that_rest_do_not_end_an_iteration_whose_variances_move() -> None:
    """Gaussians without biases have means of 0 from the start; their variances take many iterations."""
    machine, precision, bias = gaussian_machine((4, 1), 0.6)
    layers = tuple(
        layer.with_parameters(layer.parameters | {"bias": torch.zeros(layer.size).double()}) for layer in machine.layers
    )
    _, covariance, _ = gaussian_answers(precision, 0 * bias)
    solution = RelaxedBeliefPropagation(**PRECISE).solve(replace(machine, layers=layers))
    torch.testing.assert_close(torch.cat(solution.variances, 1)[0], covariance.diagonal(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("sizes", [(4, 1), (1, 3), (1, 1, 1)], ids=str)
def test_gaussian_trees_are_solved_exactly(sizes: tuple[int, ...]) -> None:
    machine, precision, bias = gaussian_machine(sizes, 0.6)
    mean, covariance, log_z = gaussian_answers(precision, bias)
    solution = RelaxedBeliefPropagation(**PRECISE).solve(machine)
    torch.testing.assert_close(torch.cat(solution.means, 1)[0], mean, rtol=0, atol=1e-11)
    torch.testing.assert_close(torch.cat(solution.variances, 1)[0], covariance.diagonal(), rtol=0, atol=1e-11)
    assert float(solution.log_partition) == pytest.approx(float(log_z), abs=1e-11)
    # TAP finds the means of Gaussians, but not their variances.
    tap = torch.cat(TAP(**PRECISE).solve(machine).variances, 1)[0]
    assert not torch.allclose(tap, covariance.diagonal(), rtol=0, atol=1e-3)


# --- what holds for every machine ---


def test_machines_without_layers_are_refused() -> None:
    with pytest.raises(UsageError, match="not for FullyVisible"):
        RelaxedBeliefPropagation().solve(random_fully_visible(4))


# --- starts and verdicts ---


def test_messages_without_an_integral_diverge() -> None:
    # Appendix B.3: undecided neighbours take more from a Gaussian unit's curvature than it has.
    machine = RBM(
        (Bernoulli(torch.zeros(8).double()), Gaussian(torch.full((2,), -4.0).double(), torch.full((2,), 0.5).double())),
        (torch.ones(8, 2).double(),),
    )
    solution = RelaxedBeliefPropagation().solve(machine)
    assert solution.status.tolist() == [Status.DIVERGED]
    assert bool(solution.log_partition.isnan())
