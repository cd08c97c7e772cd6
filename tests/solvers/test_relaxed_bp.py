"""Relaxed belief propagation: its order against exact answers, its limit against TAP, and where it must be exact."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import (
    brute_force,
    errors,
    of_shapes,
    orders,
    random_fully_visible,
    random_rbm,
    seeded,
    two_patterns,
    with_weights,
)
from real_machines import exact, gaussian_answers, gaussian_machine, random_machine

from restore.errors import InputError, UsageError
from restore.fields import Fields
from restore.marginals import Status
from restore.priors import RBM, LayeredPrior
from restore.priors.exact import exact_moments
from restore.solvers import TAP, RelaxedBeliefPropagation, SeveralStarts
from restore.units import Bernoulli, Gaussian

PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.3}


# --- against exact answers ---


@of_shapes("rbm", "tilted", "three-layers", "four-layers")
def test_errors_are_of_third_order_in_the_weights(machine: LayeredPrior) -> None:
    found = []
    for power in (7, 8):
        weak = with_weights(machine, 2.0**-power)
        truth = brute_force(weak)
        found.append(errors(RelaxedBeliefPropagation(**PRECISE).solve(weak), truth.log_partition, truth.means))
    assert orders(found) == pytest.approx([3, 3], abs=0.1)


@pytest.mark.parametrize(
    "kinds", [("truncated", "bernoulli"), ("spiked", "spin"), ("truncated", "spiked")], ids="-".join
)
def test_errors_are_of_third_order_for_other_units(kinds: tuple[str, str]) -> None:
    machine = random_machine((kinds[0], 2), (kinds[1], 2), seed=3)
    found = []
    for power in (4, 5):
        weak = with_weights(machine, 2.0**-power)
        assert isinstance(weak, LayeredPrior)
        truth = exact(weak)
        found.append(errors(RelaxedBeliefPropagation(**PRECISE).solve(weak), truth.log_partition, truth.means))
    # Spins without much bias have little of a third cumulant, so that higher orders are seen beside it.
    assert all(2.8 < order < 4.2 for order in orders(found)), found


@pytest.mark.parametrize("kind", ["truncated", "spiked", "spin", "bernoulli"])
def test_decoupled_machines_are_solved_exactly(kind: str) -> None:
    machine = random_machine((kind, 2), ("truncated", 1), ("bernoulli", 1), scale=0.0)
    truth = exact(machine)
    assert errors(
        RelaxedBeliefPropagation(**PRECISE).solve(machine), truth.log_partition, truth.means
    ) == pytest.approx((0, 0), abs=1e-11)


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
    found = RelaxedBeliefPropagation(**PRECISE).solve(machine)
    assert float(found.log_partition) == pytest.approx(float(exact_moments(machine).log_partition), abs=1e-9)


def test_means_that_rest_do_not_end_an_iteration_whose_variances_move() -> None:
    """Gaussians without biases have means of 0 from the start; their variances take many iterations."""
    machine, precision, bias = gaussian_machine((4, 1), 0.6)
    layers = tuple(
        layer.with_parameters(layer.parameters | {"bias": torch.zeros(layer.size).double()}) for layer in machine.layers
    )
    _, covariance, _ = gaussian_answers(precision, 0 * bias)
    found = RelaxedBeliefPropagation(**PRECISE).solve(replace(machine, layers=layers))
    torch.testing.assert_close(torch.cat(found.variances, 1)[0], covariance.diagonal(), rtol=0, atol=1e-11)


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


def test_means_of_gaussians_are_exact_on_loops_too() -> None:
    machine, precision, bias = gaussian_machine((4, 3), 0.3)
    mean, covariance, _ = gaussian_answers(precision, bias)
    solution = RelaxedBeliefPropagation(**PRECISE).solve(machine)
    torch.testing.assert_close(torch.cat(solution.means, 1)[0], mean, rtol=0, atol=1e-11)
    assert float((torch.cat(solution.variances, 1)[0] - covariance.diagonal()).abs().max()) > 1e-5


# --- against TAP ---


def test_the_difference_to_tap_is_of_third_order_in_the_weights() -> None:
    machine, found = random_rbm(6, 5, seed=2), []
    for power in (8, 9):
        weak = with_weights(machine, 2.0**-power)
        relaxed, tap = RelaxedBeliefPropagation(**PRECISE).solve(weak), TAP(**PRECISE).solve(weak)
        found.append(errors(relaxed, float(tap.log_partition), [mean[0].numpy() for mean in tap.means]))
    assert orders(found) == pytest.approx([3, 3], abs=0.1)


@pytest.mark.thorough
def test_the_difference_to_tap_falls_as_machines_grow() -> None:
    # With weights of N(0, 1/n) a unit hears n terms of third order and random sign, √n n^-3/2 = 1/n in all.
    sizes, differences = (16, 64, 256), []
    for size in sizes:
        found = []
        for seed in range(4):
            machine = random_rbm(size, size, scale=size**-0.5, seed=seed)
            pair = [kind(tol=1e-12).solve(machine) for kind in (RelaxedBeliefPropagation, TAP)]
            found.append(torch.cat([one - other for one, other in zip(pair[0].means, pair[1].means, strict=True)], 1))
        differences.append(float(torch.stack(found).pow(2).mean().sqrt()))
    slope = np.polyfit(np.log(sizes), np.log(differences), 1)[0]
    assert slope == pytest.approx(-1, abs=0.15)


# --- what holds for every machine ---


@pytest.mark.thorough
@settings(max_examples=15)
@given(
    st.sampled_from(["bernoulli", "spin", "truncated", "spiked"]),
    st.sampled_from(["bernoulli", "truncated"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(0, 10_000),
)
def test_order_of_units_does_not_matter(visible: str, hidden: str, lower: int, upper: int, seed: int) -> None:
    machine = random_machine((visible, lower), (hidden, upper), scale=0.3, seed=seed)
    orders = [torch.randperm(size, generator=seeded(seed)) for size in (lower, upper)]
    moved = LayeredPrior(
        tuple(
            units.with_parameters({name: value[order] for name, value in units.parameters.items()})
            for units, order in zip(machine.layers, orders, strict=True)
        ),
        (machine.couplings[0].matrix[orders[0]][:, orders[1]],),
    )
    solver = RelaxedBeliefPropagation(tol=1e-12)
    plain, other = solver.solve(machine), solver.solve(moved)
    for mean, again, order in zip(plain.means, other.means, orders, strict=True):
        torch.testing.assert_close(again, mean[:, order], rtol=0, atol=1e-10)
    torch.testing.assert_close(other.log_partition, plain.log_partition, rtol=0, atol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["bernoulli", "truncated", "spiked"])
@pytest.mark.parametrize("deep", [False, True], ids=["rbm", "three-layers"])
def test_a_batch_gives_what_each_image_alone_gives(kind: str, deep: bool) -> None:
    machine = random_machine((kind, 7), ("bernoulli", 5), *([("truncated", 3)] if deep else []), scale=0.5)
    batch = 9
    linear = torch.logspace(-1, 2, batch).double()[:, None] * torch.randn(batch, 7, generator=seeded(1)).double()
    quadratic = torch.rand(batch, 7, generator=seeded(2)).double()
    start = torch.rand(batch, 7, generator=seeded(3)).double()
    solver = RelaxedBeliefPropagation(tol=1e-8)
    together = solver.solve(machine.tilt(Fields(linear, quadratic)), start)
    assert len(together.iterations.unique()) >= 2
    for row in range(batch):
        one = slice(row, row + 1)
        alone = solver.solve(machine.tilt(Fields(linear[one], quadratic[one])), start[one])
        for got, wanted in zip((*together.means, *together.variances), (*alone.means, *alone.variances), strict=True):
            torch.testing.assert_close(got[one], wanted, rtol=0, atol=1e-10)
        torch.testing.assert_close(together.log_partition[one], alone.log_partition)
        assert torch.equal(together.iterations[one], alone.iterations)
        assert torch.equal(together.status[one], alone.status)


def test_a_limit_on_memory_makes_parts_and_no_difference() -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(Fields(torch.randn(7, 6, generator=seeded(1)).double()))
    solver = RelaxedBeliefPropagation()
    whole = solver.solve(machine)
    one = 32 * 30 * 8
    for limit in (one, 3 * one):
        parts = replace(solver, max_memory=limit).solve(machine)
        assert torch.equal(parts.means[0], whole.means[0]) and torch.equal(parts.iterations, whole.iterations)
    with pytest.raises(InputError, match=r"relaxed belief propagation with 6 x 5 units takes .*--max-memory"):
        replace(solver, max_memory=one - 1).solve(machine)


@pytest.mark.parametrize("wrong", [{"max_iter": 0}, {"tol": -1e-9}, {"damping": 1.0}, {"max_memory": 0}], ids=str)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        RelaxedBeliefPropagation(**wrong)


def test_machines_without_layers_are_refused() -> None:
    with pytest.raises(UsageError, match="not for FullyVisible"):
        RelaxedBeliefPropagation().solve(random_fully_visible(4))


# --- starts and verdicts ---


def test_the_start_decides_between_modes() -> None:
    machine, patterns = two_patterns()
    solver = RelaxedBeliefPropagation(tol=1e-9)
    found = solver.solve(machine.rows(torch.zeros(2, dtype=torch.int64)), patterns)
    assert found.status.tolist() == [Status.CONVERGED] * 2
    assert float((found.means[0] - patterns).abs().max()) < 0.2
    several = SeveralStarts(solver).solve(machine, patterns[None])
    torch.testing.assert_close(several.means[0][0], exact_moments(machine).visible, rtol=0, atol=0.02)


def test_an_image_that_is_not_finite_diverges_alone() -> None:
    linear = torch.randn(4, 6, generator=seeded(1), dtype=torch.float64)
    broken = linear.clone()
    broken[1, 2] = math.nan
    machine, solver = random_rbm(6, 5, scale=0.5), RelaxedBeliefPropagation(tol=1e-9)
    good, got = solver.solve(machine.tilt(Fields(linear))), solver.solve(machine.tilt(Fields(broken)))
    assert got.status.tolist() == [0, Status.DIVERGED, 0, 0]
    for row in (0, 2, 3):
        torch.testing.assert_close(got.means[0][row], good.means[0][row], rtol=0, atol=1e-8)


def test_messages_without_an_integral_diverge() -> None:
    # Appendix B.3: undecided neighbours take more from a Gaussian unit's curvature than it has.
    machine = RBM(
        (Bernoulli(torch.zeros(8).double()), Gaussian(torch.full((2,), -4.0).double(), torch.full((2,), 0.5).double())),
        (torch.ones(8, 2).double(),),
    )
    solution = RelaxedBeliefPropagation().solve(machine)
    assert solution.status.tolist() == [Status.DIVERGED]
    assert bool(solution.log_partition.isnan())
