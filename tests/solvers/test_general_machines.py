"""Solvers and chains on machines of units of any kind, against every joint state."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from directions import assert_slopes
from machines import (
    FLAT,
    SMALL,
    both,
    brute_force,
    errors,
    orders,
    random_evidence,
    random_fully_visible,
    random_machine,
    random_rbm,
    seeded,
    with_weights,
)
from oracle import binary_states, exact_moments
from scipy import stats
from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.learning.gradients.statistics import fixed_point
from restore.priors import RBM, BoltzmannMachine, FullyVisible
from restore.solvers import TAP, AdaptiveTAP, LayeredMap, MeanField, RelaxedBeliefPropagation, Solution
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.status import Status
from restore.units import Bernoulli, Gaussian

PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.3}

# Every unit type on either side, and a deep machine. Of some seeds the third order is small by chance and hidden behind
# the fourth; of these it is not.
MACHINES = {
    "truncated-bernoulli": random_machine(("truncated", 2), ("bernoulli", 3), scale=0.6, seed=4),
    "bernoulli-truncated": random_machine(("bernoulli", 3), ("truncated", 2), scale=0.6, seed=9),
    "symmetric-spin": random_machine(("symmetric", 2), ("spin", 3), scale=0.6, seed=7),
    "spiked-truncated-bernoulli": random_machine(("spiked-truncated", 2), ("bernoulli", 3), scale=0.6, seed=3),
    "symmetric-spiked-truncated": random_machine(("symmetric", 2), ("spiked-truncated", 2), scale=0.6, seed=1),
    "bernoulli-spiked-gaussian": random_machine(("bernoulli", 3), ("spiked-gaussian", 2), scale=0.2, seed=6),
    "bernoulli-gaussian": random_machine(("bernoulli", 4), ("gaussian", 2), scale=0.6, seed=4),
    "truncated-gaussian": random_machine(("truncated", 2), ("gaussian", 2), scale=0.6, seed=1),
    "truncated-bernoulli-spin": random_machine(("truncated", 2), ("bernoulli", 3), ("spin", 2), scale=0.6, seed=2),
    "fully-visible": random_fully_visible(5, scale=0.6, seed=1),
}
every_layered = pytest.mark.parametrize("name", [name for name in MACHINES if name != "fully-visible"])


def solved(solver: LayeredMap, machine: BoltzmannMachine, batch: int = 1) -> Solution:
    start = machine.layers[0].moments(Fields(torch.zeros(batch, 1).to(machine.couplings[0].weights)))[0]
    return solver.solve(machine, start)


def settled(solver: LayeredMap, machine: BoltzmannMachine) -> Solution:
    solution = solved(solver, machine)
    assert solution.status.tolist() == [Status.CONVERGED]
    return solution


def joined(layers: Any) -> np.ndarray:
    return np.concatenate([np.asarray(layer).reshape(-1) for layer in layers])


# --- small machines against the exact answers ---


@pytest.mark.parametrize("kind", [MeanField, TAP, AdaptiveTAP, RelaxedBeliefPropagation])
@every_layered
def test_machines_without_couplings_are_solved_exactly(kind: Any, name: str) -> None:
    machine = with_weights(MACHINES[name], 0.0)
    solution, truth = settled(kind(**PRECISE), machine), brute_force(machine)
    assert float(solution.log_partition) == pytest.approx(truth.log_partition, abs=1e-7)
    np.testing.assert_allclose(joined(solution.means), joined(truth.means), atol=1e-7)
    np.testing.assert_allclose(joined(solution.variances), joined(truth.variances), atol=1e-7)


# The power of the weights in which the errors of log Z and of the means begin.
ORDER: dict[Any, int] = {MeanField: 2, TAP: 3, AdaptiveTAP: 3, RelaxedBeliefPropagation: 3}


def ordered() -> Iterator[Any]:
    """Every method with the machines that it solves; machines of Gaussian units those of mean field and TAP alone."""
    for kind, (name, machine) in itertools.product(ORDER, (MACHINES | SMALL).items()):
        gaussian = any(isinstance(layer, Gaussian) for layer in machine.layers)
        dense = isinstance(machine, FullyVisible)
        if (kind in (MeanField, TAP) or not gaussian) and not (kind is RelaxedBeliefPropagation and dense):
            yield pytest.param(kind, machine, gaussian, id=f"{kind.__name__}-{name}")


@pytest.mark.parametrize(("kind", "machine", "gaussian"), list(ordered()))
def test_errors_shrink_at_the_order_of_the_method(kind: Any, machine: BoltzmannMachine, gaussian: bool) -> None:
    """What TAP lacks at third order is a product of the third cumulants of both sides: Gaussian units have none."""
    results = []
    # The fourth order drowns in rounding at smaller weights.
    for factor in (0.2, 0.1) if gaussian else (2.0**-7, 2.0**-8):
        weak = with_weights(machine, factor)
        solution, truth = settled(kind(**PRECISE), weak), brute_force(weak)
        results.append(errors(solution, truth.log_partition, truth.means))
    assert orders(results) == pytest.approx([4 if gaussian and kind is TAP else ORDER[kind]] * 2, abs=0.1)


@every_layered
def test_statistics_of_a_fixed_point_are_the_gradient_of_its_log_partition(name: str) -> None:
    machine, solver = MACHINES[name], TAP(**PRECISE | {"damping": 0.0})
    solution = settled(solver, machine)
    gradient, means, variances = fixed_point(machine, list(solution.means), list(solution.variances))
    flat = replace(solver, tol=FLAT)
    assert_slopes(gradient, lambda moved: solved(flat, moved).log_partition, machine, 1e-6, step=1e-4)
    for got, wanted in zip((*means, *variances), (*solution.means, *solution.variances), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


# --- long Gibbs runs ---


@pytest.mark.parametrize("kind", ["spin", "truncated"])
def test_units_joined_with_each_other_are_sampled_only_as_bits(kind: str) -> None:
    machine = FullyVisible((random_machine((kind, 3), ("spin", 1)).layers[0],), (torch.zeros(3, 3).double(),))
    with pytest.raises(UsageError):
        machine.gibbs_sweep(torch.zeros(2, 3).double(), seeded(1))


# --- what has no answer ---


def pair(strength: float, bias: float) -> RBM:
    ones = torch.ones(1, dtype=torch.float64)
    return RBM((Gaussian(bias * ones, ones), Gaussian(0 * ones, ones)), (strength * ones[:, None],))


@pytest.mark.parametrize("bias", [0.0, 0.3])
@pytest.mark.parametrize("strength", [0.49, 0.51, 0.9, 1.1, 30.0])
def test_pairs_of_gaussian_units(strength: float, bias: float) -> None:
    """c = 1 / (1 - w² c) has a solution up to w = 1/2 only; the machine itself is stable up to w = 1."""
    solution = solved(TAP(max_iter=3000, tol=1e-10), pair(strength, bias))
    if strength < 0.5:
        assert solution.status.tolist() == [Status.CONVERGED]
        wanted = (1 - math.sqrt(1 - 4 * strength**2)) / (2 * strength**2)
        assert float(solution.variances[0]) == pytest.approx(wanted, rel=1e-6)
    else:
        assert solution.status.tolist() == [Status.DIVERGED]


@both
@pytest.mark.parametrize("hidden", ["gaussian", "spiked-gaussian"])
@pytest.mark.parametrize("visible", ["bernoulli", "truncated", "spiked-symmetric", "gaussian"])
def test_images_that_make_a_machine_unstable_diverge_alone(kind: type[LayeredMap], visible: str, hidden: str) -> None:
    machine = random_machine((visible, 4), (hidden, 3), scale=0.1)
    curvature = torch.zeros(4, 3, dtype=torch.float64)
    curvature[1, 2], curvature[3, 0] = -5.0, -machine.hidden.parameters["quadratic"][0]
    tilted = machine.tilt(Fields(torch.zeros(4, 4).double()), Fields(torch.zeros(4, 3).double(), curvature))
    solution = solved(kind(**PRECISE), tilted, batch=4)
    assert solution.status.tolist() == [Status.CONVERGED, Status.DIVERGED, Status.CONVERGED, Status.DIVERGED]
    good = solution.status == Status.CONVERGED
    alone = settled(kind(**PRECISE), machine)
    for values, wanted in zip((*solution.means, *solution.variances), (*alone.means, *alone.variances), strict=True):
        torch.testing.assert_close(values[good], wanted.expand(2, -1), rtol=0, atol=1e-12)
    assert bool(solution.log_partition[good].isfinite().all())
    assert not bool(solution.log_partition[~good].isfinite().any())


# --- symmetries ---


def spins_as_bits(machine: RBM) -> tuple[RBM, float]:
    """A machine with hidden spins h = 2b - 1 as one with hidden bits b, and what log Z of the spins gains."""
    hidden = machine.hidden.parameters["bias"]
    visible = machine.visible.tilt(Fields(-machine.weights.sum(1)))
    return RBM((visible, Bernoulli(2 * hidden)), (2 * machine.weights,)), -float(hidden.sum())


@both
@pytest.mark.parametrize("kind_of_visible", ["bernoulli", "spin", "symmetric", "spiked-truncated", "gaussian"])
def test_spins_are_bits_in_another_gauge(kind: type[LayeredMap], kind_of_visible: str) -> None:
    spins = random_machine((kind_of_visible, 4), ("spin", 3), scale=0.3, seed=3)
    bits, gained = spins_as_bits(spins)
    solution, other = settled(kind(**PRECISE), spins), settled(kind(**PRECISE), bits)
    torch.testing.assert_close(solution.means[0], other.means[0], rtol=0, atol=1e-11)
    torch.testing.assert_close(solution.means[1], 2 * other.means[1] - 1, rtol=0, atol=1e-11)
    torch.testing.assert_close(solution.variances[1], 4 * other.variances[1], rtol=0, atol=1e-11)
    torch.testing.assert_close(solution.log_partition, other.log_partition + gained, rtol=0, atol=1e-10)
    exact, same = exact_moments(spins), exact_moments(bits)
    torch.testing.assert_close(exact.visible, same.visible, rtol=0, atol=1e-12)
    torch.testing.assert_close(exact.log_partition, same.log_partition + gained, rtol=0, atol=1e-12)


# --- chains ---


def exact_samples(machine: RBM, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Visible states drawn from the exact distribution; and all states with their probabilities."""
    states = binary_states(machine.visible.size, machine.weights)
    probability = torch.softmax(-machine.free_energy(states), 0)
    return states[torch.multinomial(probability, count, replacement=True, generator=generator)], states, probability


@pytest.mark.parametrize("tilted", [False, True], ids=["prior", "posterior"])
def test_chains_started_at_the_distribution_stay_there(tilted: bool) -> None:
    machine = random_rbm(4, 3, scale=1.5)
    if tilted:
        machine = machine.tilt(Fields(torch.tensor([1.0, -2.0, 0.5, 0.0]).double()))
    count, generator = 40_000, seeded(1)
    chains, _, probability = exact_samples(machine, count, generator)
    for _ in range(3):
        chains = gibbs_steps(machine, chains, 2, generator)
        codes = (chains.long() << torch.arange(4)).sum(-1)
        seen = torch.bincount(codes, minlength=16).double()
        statistic = float(((seen - count * probability) ** 2 / (count * probability)).sum())
        # One in a million such tests fails by chance.
        assert statistic <= stats.chi2.ppf(1 - 1e-6, 15)


def test_chains_find_the_posterior_from_anywhere() -> None:
    machine, generator = random_rbm(6, 4, scale=0.5).tilt(random_evidence(3, 6, seed=3)), seeded(2)
    exact = exact_moments(machine)
    # At these weights a chain forgets within a few sweeps: at least 400 independent samples of variance at most 1/4.
    visible, total = gibbs_steps(machine, torch.zeros(3, 6).double(), 50, generator), torch.zeros(3, 6).double()
    for _ in range(4000):
        visible = gibbs_steps(machine, visible, 1, generator)
        total += visible
    torch.testing.assert_close(total / 4000, exact.visible, rtol=0, atol=5 * 0.5 / math.sqrt(400))
