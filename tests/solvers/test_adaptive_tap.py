"""Adaptive TAP: where it must be exact, against exact answers and TAP elsewhere, and what it says of no law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import (
    FLAT,
    brute_force,
    errors,
    numerical_gradients,
    of_shapes,
    orders,
    random_deep,
    random_fully_visible,
    random_rbm,
    seeded,
    two_patterns,
    with_weights,
)
from real_machines import gaussian_answers, gaussian_machine
from torch import Tensor

from restore.fields import Fields
from restore.marginals import Status
from restore.priors import RBM, BoltzmannMachine, FullyVisible
from restore.priors.exact import exact_moments
from restore.solvers import TAP, AdaptiveTAP
from restore.solvers.adaptive_tap import (
    bipartite_response,
    cholesky,
    gaussian_response,
    joint_couplings,
    joint_response,
)
from restore.units import Spin

PRECISE: dict[str, Any] = {"max_iter": 3000, "tol": 1e-13, "damping": 0.3}

any_machine = of_shapes("rbm", "tilted", "three-layers", "fully-visible")


def flat(layers: tuple[Tensor, ...]) -> Tensor:
    return torch.cat(layers, 1)[0]


# --- where it must be exact ---


@any_machine
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_decoupled_machines_are_solved_exactly(machine: BoltzmannMachine, damping: float) -> None:
    alone = with_weights(machine, 0.0)
    truth = brute_force(alone)
    solution = AdaptiveTAP(**PRECISE | {"damping": damping}).solve(alone)
    np.testing.assert_allclose(flat(solution.means), np.concatenate(truth.means), atol=1e-12)
    assert float(solution.log_partition) == pytest.approx(truth.log_partition, abs=1e-12)


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
    found = solver.solve(solved)
    torch.testing.assert_close(flat(found.means), means, rtol=0, atol=1e-11)
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
    assert float(found.log_partition) == pytest.approx(own + float(joint - both), abs=1e-11)


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


@pytest.mark.parametrize(
    "machine",
    [random_rbm(5, 4, scale=0.5), random_deep(3, 3, 2, scale=0.4), random_fully_visible(6, scale=0.3)],
    ids=["rbm", "three-layers", "fully-visible"],
)
def test_the_slope_of_log_partition_in_a_bias_is_the_mean(machine: BoltzmannMachine) -> None:
    solver = AdaptiveTAP(**PRECISE)
    solution = solver.solve(machine)
    # The couplings of a fully visible machine cannot be moved one at a time.
    held = {name: value for name, value in machine.parameters.items() if name.startswith("weights")}

    class Held:
        @property
        def parameters(self) -> dict[str, Tensor]:
            return {name: value for name, value in machine.parameters.items() if name not in held}

        def with_parameters(self, moved: dict[str, Tensor]) -> BoltzmannMachine:
            return machine.with_parameters(moved | held)

    flat = replace(solver, tol=FLAT)
    slopes = numerical_gradients(lambda moved: flat.solve(moved).log_partition, Held())  # type: ignore[arg-type]
    for layer, mean in enumerate(solution.means):
        torch.testing.assert_close(slopes[f"units.{layer}.bias"], mean[0], rtol=0, atol=1e-8)


# --- against exact answers elsewhere ---


@any_machine
def test_errors_are_of_third_order_in_the_weights_and_none_larger_than_that_of_tap(machine: BoltzmannMachine) -> None:
    found: dict[type, list[tuple[float, float]]] = {AdaptiveTAP: [], TAP: []}
    for power in (7, 8):
        weak = with_weights(machine, 2.0**-power)
        truth = brute_force(weak)
        for kind, series in found.items():
            series.append(errors(kind(**PRECISE).solve(weak), truth.log_partition, truth.means))
    assert orders(found[AdaptiveTAP]) == pytest.approx([3, 3], abs=0.15)
    # On bipartite machines both lack the same third cumulants; on others TAP lacks closed triples of units as well.
    for ours, theirs in zip(found[AdaptiveTAP][1], found[TAP][1], strict=True):
        assert ours < 1.05 * theirs


def balanced(machine: FullyVisible | RBM) -> BoltzmannMachine:
    """With biases under which units are about as often 1 as 0, where couplings act most."""
    if isinstance(machine, FullyVisible):
        return FullyVisible.binary(machine.weights, machine.visible.parameters["bias"] - machine.weights.sum(1) / 2)
    return RBM.binary(
        machine.weights,
        machine.visible.parameters["bias"] - machine.weights.sum(1) / 2,
        machine.hidden.parameters["bias"] - machine.weights.sum(0) / 2,
    )


def rotated(seed: int) -> BoltzmannMachine:
    """Couplings with random eigenvectors, half of whose eigenvalues are 1.2 and half -1.2."""
    basis, _ = torch.linalg.qr(torch.randn(12, 12, generator=seeded(seed), dtype=torch.float64))
    signs = torch.where(torch.arange(12) < 6, -1.0, 1.0).double()
    couplings = 1.2 * (basis * signs) @ basis.T
    couplings = (couplings + couplings.T) / 2
    couplings.fill_diagonal_(0)
    return balanced(FullyVisible.binary(couplings, 0.5 * torch.randn(12, generator=seeded(seed + 50)).double()))


def orthogonal(seed: int) -> BoltzmannMachine:
    """An RBM whose weights have orthogonal columns of length 2."""
    weights, _ = torch.linalg.qr(torch.randn(40, 10, generator=seeded(seed), dtype=torch.float64))
    plain = random_rbm(40, 10, bias=0.5, seed=seed)
    return balanced(plain.with_parameters(plain.parameters | {"weights.0": 2 * weights}))


def independent(seed: int) -> BoltzmannMachine:
    """Couplings of independent signs and sizes (SK), N(0, 1.44 / n)."""
    return balanced(random_fully_visible(12, scale=1.2 / 12**0.5, bias=0.5, seed=seed))


@pytest.mark.parametrize(
    ("make", "gain"), [(rotated, 2), (orthogonal, 4), (independent, 2)], ids=["rotated", "orthogonal", "independent"]
)
def test_log_partition_is_nearer_than_that_of_tap(make: Callable[[int], BoltzmannMachine], gain: float) -> None:
    series: dict[type, list[tuple[float, float]]] = {AdaptiveTAP: [], TAP: []}
    for seed in range(8):
        machine = make(seed)
        truth = exact_moments(machine)  # type: ignore[arg-type]
        for kind, found in series.items():
            solution = kind(max_iter=3000, tol=1e-10, damping=0.5).solve(machine)
            assert solution.status.tolist() == [Status.CONVERGED]
            difference = (solution.means[0][0] - truth.visible).abs().max()
            found.append((abs(float(solution.log_partition - truth.log_partition)), float(difference)))
    ours, theirs = (np.median(found, axis=0) for found in series.values())
    assert theirs[0] > gain * ours[0]
    assert theirs[1] > ours[1]


# --- what holds for every machine ---


def test_spins_are_binary_units_in_other_words() -> None:
    draw = seeded(5)
    upper = 0.25 * torch.randn(8, 8, generator=draw, dtype=torch.float64).triu(1)
    couplings, bias = upper + upper.T, torch.randn(8, generator=draw, dtype=torch.float64)
    spins = AdaptiveTAP(**PRECISE).solve(FullyVisible((Spin(bias),), (couplings,)))
    binary = AdaptiveTAP(**PRECISE).solve(FullyVisible.from_spins(couplings, bias))
    torch.testing.assert_close(2 * binary.means[0] - 1, spins.means[0], rtol=0, atol=1e-11)
    shift = couplings.sum() / 2 - bias.sum()
    torch.testing.assert_close(binary.log_partition + shift, spins.log_partition, rtol=0, atol=1e-10)


# --- starts and verdicts ---


def test_images_whose_gaussian_side_is_no_law_diverge_and_no_others() -> None:
    machine, patterns = two_patterns(strength=3.0)
    balance = torch.tensor([0.2 if on else -0.2 for on in patterns[0]]).double()
    # Without evidence the solver is held between both patterns, where couplings outweigh what the units can vary.
    evidence = torch.stack([balance * 0, 20 * balance, balance * math.nan])
    neutral = machine.tilt(Fields(0.2 * (2 * patterns[0] - 1)))
    undecided = torch.full((3, 12), 0.5).double()
    found = AdaptiveTAP(max_iter=300, damping=0.7).solve(neutral.tilt(Fields(evidence)), undecided)
    assert found.status.tolist() == [Status.DIVERGED, Status.CONVERGED, Status.DIVERGED]
    assert bool(found.means[0][[0, 2]].isnan().all()) and bool(found.log_partition[[0, 2]].isnan().all())
    assert float((found.means[0][1] - patterns[0]).abs().max()) < 0.05


def test_tap_leads_to_where_there_is_a_law() -> None:
    machine, patterns = two_patterns(strength=1.5)
    solver = AdaptiveTAP(tol=1e-8, damping=0.5)
    start = 0.5 + 0.02 * (patterns[:1] - 0.5)
    first = solver.init(machine, start)
    depth = 2
    variances, quadratic = first[depth : 2 * depth], first[3 * depth :]
    scales = tuple(c / (1 - A * c) for c, A in zip(variances, quadratic, strict=True))
    assert bool(gaussian_response(machine, scales, first[:depth]).log_determinant.isnan())
    found = solver.solve(machine, start)
    assert found.status.tolist() == [Status.CONVERGED]
    assert float((found.means[0] - patterns[:1]).abs().max()) < 0.1


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


def test_joint_couplings_are_the_interaction() -> None:
    machine = random_deep(3, 4, 2, scale=0.5)
    state = [torch.randn(1, layer.size, generator=seeded(layer.size)).double() for layer in machine.layers]
    together = torch.cat(state, 1)[0]
    assert float(together @ joint_couplings(machine) @ together / 2) == pytest.approx(float(machine.interaction(state)))
