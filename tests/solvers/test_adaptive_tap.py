"""Adaptive TAP: where it must be exact, against exact answers and TAP elsewhere, and what it says of no law."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import gaussian_answers, gaussian_machine, of_shapes, random_rbm, seeded, two_patterns, with_weights
from torch import Tensor

from restore.fields import Fields
from restore.priors import RBM, BoltzmannMachine
from restore.solvers import AdaptiveTAP
from restore.solvers.adaptive_tap import (
    bipartite_response,
    cholesky,
    gaussian_response,
    joint_couplings,
    joint_response,
)
from restore.status import Status

PRECISE: dict[str, Any] = {"max_iter": 3000, "tol": 1e-13, "damping": 0.3}

any_machine = of_shapes("rbm", "tilted", "three-layers", "fully-visible")


def flat(layers: tuple[Tensor, ...]) -> Tensor:
    return torch.cat(layers, 1)[0]


# --- where it must be exact ---


@pytest.mark.parametrize("sizes", [(4, 3), (3, 5), (3, 4, 2)], ids=str)
def test_gaussian_machines_are_solved_exactly(sizes: tuple[int, ...]) -> None:
    machine, precision, bias = gaussian_machine(sizes, 0.35)
    mean, covariance, log_z = gaussian_answers(precision, bias)
    solution = AdaptiveTAP(**PRECISE).solve(machine)
    torch.testing.assert_close(flat(solution.means), mean, rtol=0, atol=1e-11)
    torch.testing.assert_close(flat(solution.variances), covariance.diagonal(), rtol=0, atol=1e-11)
    assert float(solution.log_partition) == pytest.approx(float(log_z), abs=1e-11)


# --- the two sides ---


@any_machine
def test_both_sides_agree_in_means_and_variances(machine: BoltzmannMachine) -> None:
    solver, solved = AdaptiveTAP(**PRECISE), with_weights(machine, 0.5)
    start = solved.layers[0].moments(Fields(torch.zeros(1, 1).double()))[0]
    state = solver.init(solved, start)
    for _ in range(300):
        state = solver.step(solved, state)
    depth = len(solved.layers)
    means, variances, linear, quadratic = (flat(state[first : first + depth]) for first in range(0, 4 * depth, depth))
    # The inverse of appendix D itself: A₂ = 1/c - A, B₂ = a/c - B.
    covariance = torch.linalg.inv(torch.diag(1 / variances - quadratic) - joint_couplings(solved))
    torch.testing.assert_close(covariance.diagonal(), variances, rtol=0, atol=1e-12)
    torch.testing.assert_close(covariance @ (means / variances - linear), means, rtol=0, atol=1e-12)
    biases = torch.cat([layer.parameters["bias"].reshape(-1) for layer in solved.layers])
    torch.testing.assert_close(torch.sigmoid(biases + linear - quadratic / 2), means, rtol=0, atol=1e-12)
    assert float(quadratic.max()) < 0
    solution = solver.solve(solved)
    torch.testing.assert_close(flat(solution.means), means, rtol=0, atol=1e-11)
    # log Z as it is defined: of the units, plus of the Gaussian law, minus of what both count.
    precision, field = torch.diag(1 / variances - quadratic) - joint_couplings(solved), means / variances - linear
    own = sum(
        float(layer.log_partition(Fields(*fields)).sum())
        for layer, *fields in zip(solved.layers, state[2 * depth : 3 * depth], state[3 * depth :], strict=True)
    )
    joint, both = (
        gaussian_answers(precision, field)[2],
        gaussian_answers(torch.diag(1 / variances), means / variances)[2],
    )
    assert float(solution.log_partition) == pytest.approx(own + float(joint - both), abs=1e-11)


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000), st.booleans())
def test_the_smaller_layer_alone_is_what_the_whole_inverse_gives(
    visible: int, hidden: int, seed: int, certain: bool
) -> None:
    weights = random_rbm(visible, hidden, scale=1.0, seed=seed).weights
    draw = seeded(seed)
    scales = tuple(0.1 * torch.rand(3, size, generator=draw).double() for size in (visible, hidden))
    centres = tuple(torch.randn(3, size, generator=draw).double() for size in (visible, hidden))
    if certain:
        scales[0][:, 0] = 0
    joint = joint_couplings(RBM.binary(weights, torch.zeros(visible), torch.zeros(hidden)))
    short = bipartite_response(weights, scales, centres)
    whole = joint_response(joint, torch.cat(scales, 1), torch.cat(centres, 1))
    if bool(short.log_determinant.isnan().any()) or bool(whole[2].isnan().any()):
        assert torch.equal(short.log_determinant.isnan(), whole[2].isnan())
        return
    for got, wanted in zip((torch.cat(short.means, 1), torch.cat(short.reactions, 1)), whole[:2], strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(short.log_determinant, whole[2], rtol=1e-7, atol=1e-9)


# --- starts and verdicts ---


def test_images_whose_gaussian_side_is_no_law_diverge_and_no_others() -> None:
    machine, patterns = two_patterns(strength=3.0)
    balance = torch.tensor([0.2 if on else -0.2 for on in patterns[0]]).double()
    # Without evidence the solver is held between both patterns, where couplings outweigh what the units can vary.
    evidence = torch.stack([balance * 0, 20 * balance, balance * math.nan])
    neutral = machine.tilt(Fields(0.2 * (2 * patterns[0] - 1)))
    undecided = torch.full((3, 12), 0.5).double()
    solution = AdaptiveTAP(max_iter=300, damping=0.7).solve(neutral.tilt(Fields(evidence)), undecided)
    assert solution.status.tolist() == [Status.DIVERGED, Status.CONVERGED, Status.DIVERGED]
    assert bool(solution.means[0][[0, 2]].isnan().all()) and bool(solution.log_partition[[0, 2]].isnan().all())
    assert float((solution.means[0][1] - patterns[0]).abs().max()) < 0.05


def test_tap_leads_to_where_there_is_a_law() -> None:
    machine, patterns = two_patterns(strength=1.5)
    solver = AdaptiveTAP(tol=1e-8, damping=0.5)
    start = 0.5 + 0.02 * (patterns[:1] - 0.5)
    first = solver.init(machine, start)
    depth = 2
    variances, quadratic = first[depth : 2 * depth], first[3 * depth :]
    scales = tuple(c / (1 - A * c) for c, A in zip(variances, quadratic, strict=True))
    assert bool(gaussian_response(machine, scales, first[:depth]).log_determinant.isnan())
    solution = solver.solve(machine, start)
    assert solution.status.tolist() == [Status.CONVERGED]
    assert float((solution.means[0] - patterns[:1]).abs().max()) < 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("joint", [False, True], ids=["smaller-layer", "joint"])
def test_inverses_that_rounding_decides_on_are_none(dtype: torch.dtype, joint: bool) -> None:
    left, right = (
        torch.linalg.qr(torch.randn(20, 20, generator=seeded(seed), dtype=torch.float64))[0] for seed in (1, 2)
    )
    epsilon = torch.finfo(dtype).eps
    halves = torch.full((1, 20), 0.5, dtype=dtype)

    def log_determinant(gap: float) -> Tensor:
        values = torch.linspace(0, 0.7, 20).double()
        values[0] = math.sqrt(1 - gap)
        weights = (2 * (left * values) @ right).to(dtype)
        if joint:
            couplings = joint_couplings(RBM.binary(weights, halves[0], halves[0]))
            return joint_response(couplings, halves.repeat(1, 2), halves.repeat(1, 2))[2]
        return bipartite_response(weights, (halves, halves), (halves, halves)).log_determinant

    for gap in (-1.0, -epsilon, 0.0, epsilon, 100 * epsilon):
        assert bool(log_determinant(gap).isnan())
    values = torch.linspace(0, 0.7, 20).double()[1:]
    wanted = math.log(1e5 * epsilon) + float(torch.log1p(-values.square()).sum())
    assert float(log_determinant(1e5 * epsilon)) == pytest.approx(wanted, abs=1e-3)


def test_what_is_not_finite_has_no_factor() -> None:
    assert bool(cholesky(torch.full((1, 3, 3), math.nan)).isnan().all())
    assert bool(cholesky(torch.full((1, 3, 3), math.inf)).isnan().all())
