"""Belief propagation against enumeration: exact on trees, how wrong on loops, and how often it finds the best state."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import FLAT, brute_force, numerical_gradients, random_rbm, with_weights
from textbook import (
    CLOSE,
    CLOSE_LOG_Z,
    agree,
    forms,
    log_summed,
    log_weight,
    numbers,
    numpy_of,
    rounded,
    solve,
    textbook_of_many,
    with_values,
)

from restore.marginals import Status
from restore.priors import RBM
from restore.solvers.messages import bp_kernel


def forest(visible: int, hidden: int, seed: int, scale: float = 2.0, bias: float = 1.0) -> RBM:
    """A machine whose weights that are not zero form a random forest."""
    machine = random_rbm(visible, hidden, scale=scale, bias=bias, seed=seed)
    draw = np.random.default_rng(seed)
    root = list(range(visible + hidden))

    def find(node: int) -> int:
        while root[node] != node:
            node = root[node]
        return node

    keep = torch.zeros(visible, hidden, dtype=torch.float64)
    for edge in draw.permutation(visible * hidden):
        i, j = divmod(int(edge), hidden)
        if find(i) != find(visible + j) and draw.random() < 0.9:
            root[find(i)] = find(visible + j)
            keep[i, j] = 1
    return rounded(with_values(machine, machine.weights * keep))


# --- exact on trees ---


def tight(form: str, machine: RBM) -> dict[str, Any]:
    """Messages have crossed a forest after as many iterations as it has units."""
    return {"tol": 0.0, "max_iter": sum(machine.weights.shape) + 2}


def max_marginals(machine: RBM) -> list[np.ndarray]:
    """sigmoid(log max p(x = 1, rest) - log max p(x = 0, rest)) of every unit."""
    truth = brute_force(machine)
    logs = np.log(truth.probabilities)
    odds = np.array([logs[one == 1].max() - logs[one == 0].max() for one in truth.states.T])
    means = 1 / (1 + np.exp(-odds))
    return np.split(means, [machine.weights.shape[0]])


@forms
@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_sum_product_is_exact_on_forests(form: str, visible: int, hidden: int, seed: int) -> None:
    machine = forest(visible, hidden, seed)
    truth = brute_force(machine)
    found = solve(machine, form, **tight(form, machine), pairs=True)
    for mean, exact in zip(found.means, truth.means, strict=True):
        agree(mean[0], exact, CLOSE[form])
    # Where there is no edge, a pair of beliefs knows nothing of the way around.
    edges = numpy_of(machine.weights) != 0
    agree(numpy_of(found.pairs)[edges], truth.pairs[0][edges], CLOSE[form])
    agree(found.log_partition, np.array([truth.log_partition]), CLOSE_LOG_Z[form])


@forms
@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_max_product_is_exact_on_forests(form: str, visible: int, hidden: int, seed: int) -> None:
    machine = forest(visible, hidden, seed)
    truth = brute_force(machine)
    found = solve(machine, form, kind="max", **tight(form, machine))
    for mean, exact in zip(found.means, max_marginals(machine), strict=True):
        agree(mean[0], exact, CLOSE[form])
    best = np.log(truth.probabilities.max()) + truth.log_partition
    assert float(found.log_partition[0]) == pytest.approx(best, abs=1e-5)


@forms
@pytest.mark.parametrize("hidden", [1, 2, 5, 17])
def test_mixed_product_is_exact_where_no_hidden_unit_has_two_neighbours(form: str, hidden: int) -> None:
    """Single edges and stars around visible units; each star is a part of its own."""
    for seed in range(10):
        machine = random_rbm(4, hidden, scale=2.0, bias=1.0, seed=seed)
        owner = torch.arange(hidden) % 4 if seed % 2 else torch.zeros(hidden)
        machine = rounded(with_values(machine, machine.weights * (owner == torch.arange(4)[:, None]).to(torch.float64)))
        found = solve(machine, form, kind="mixed", tol=1e-7)
        states = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
        values = log_summed(machine, 0, states)
        assert (numpy_of(found.means[0])[0] > 0.5).tolist() == (states[values.argmax()] == 1).tolist()
        assert float(found.log_partition[0]) == pytest.approx(values.max(), abs=1e-5)
        # The belief in a visible unit is exact as well, hidden units being summed over.
        weights, b, c = numbers(machine, 0)
        odds = b + (np.logaddexp(0, weights + c) - np.logaddexp(0, c)).sum(-1)
        agree(found.means[0][0], 1 / (1 + np.exp(-odds)), CLOSE[form])


@pytest.mark.parametrize("size", [4, 5])
def test_a_chain_is_a_forest(size: int) -> None:
    """v - h - v - h ... with all messages needed: the last unit hears of the first."""
    band = torch.eye(size, dtype=torch.float64) + torch.diag(torch.ones(size - 1, dtype=torch.float64), 1)
    machine = random_rbm(size, size, scale=3.0, bias=1.0, seed=size)
    machine = with_values(machine, machine.weights * band)
    truth = brute_force(machine)
    found = solve(machine, "plain", tol=0.0, max_iter=2 * size, pairs=True)
    agree(found.means[1][0], truth.means[1], 1e-12)
    agree(numpy_of(found.pairs)[band == 1], truth.pairs[0][band == 1], 1e-12)
    early = solve(machine, "plain", tol=0.0, max_iter=1)
    assert np.abs(numpy_of(early.means[1])[0] - truth.means[1]).max() > 1e-4


# --- approximate on loops ---


@pytest.mark.parametrize("seed", range(4))
def test_the_error_on_loops_is_of_the_order_of_the_smallest_loop(seed: int) -> None:
    """A loop of n edges enters log Z with the product of n correlations; 4 is the shortest of a bipartite graph.

    Means are derivatives of log Z in the fields: order 4 as well. Pairs are derivatives in the weights: order 3.
    """
    machine = random_rbm(5, 4, scale=0.4, seed=seed)
    errors = []
    for factor in (1.0, 0.1, 0.05):
        weaker = with_weights(machine, factor)
        truth = brute_force(weaker)
        found = solve(weaker, "plain", tol=0.0, max_iter=100, pairs=True)
        errors.append(
            (
                abs(float(found.log_partition) - truth.log_partition),
                sum(
                    np.abs(numpy_of(mean)[0] - exact).sum()
                    for mean, exact in zip(found.means, truth.means, strict=True)
                ),
                np.abs(numpy_of(found.pairs) - truth.pairs[0]).sum(),
            )
        )
    orders = np.log2(np.array(errors[1]) / np.array(errors[2]))
    assert abs(orders - np.array([4, 4, 3])).max() < 0.35, (orders, errors)
    assert max(errors[0]) < 0.05


def test_without_loops_of_four_the_error_is_of_order_six() -> None:
    """A ring of six units: three visible and three hidden ones."""
    ring = torch.tensor([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=torch.float64)
    machine = random_rbm(3, 3, scale=1.0, seed=2)
    machine = with_values(machine, ring * (1 + machine.weights.abs()))
    errors = []
    for factor in (0.1, 0.05):
        weaker = with_weights(machine, factor)
        found = solve(weaker, "plain", tol=0.0, max_iter=100)
        errors.append(abs(float(found.log_partition) - brute_force(weaker).log_partition))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.35)


@pytest.mark.parametrize("seed", range(2))
def test_moments_are_derivatives_of_log_z(seed: int) -> None:
    """The Bethe free energy is stationary in the messages, so that its total and partial derivatives are the same."""
    machine = random_rbm(5, 4, scale=0.8, seed=seed)
    found = solve(machine, "plain", tol=0.0, max_iter=150, pairs=True)
    gradients = numerical_gradients(lambda moved: solve(moved, "plain", tol=FLAT, max_iter=150).log_partition, machine)
    agree(found.means[0][0], gradients["units.0.bias"], 1e-8)
    agree(found.means[1][0], gradients["units.1.bias"], 1e-8)
    agree(found.pairs, gradients["weights.0"], 1e-8)
    # This is the approximation's own derivative: the exact moments differ.
    assert np.abs(numpy_of(found.pairs) - brute_force(machine).pairs[0]).max() > 1e-5


# --- how often the most probable state is found ---


def exact_best(machine: RBM, kind: str) -> float:
    visible = np.array(list(itertools.product((0.0, 1.0), repeat=machine.weights.shape[0])))
    if kind == "mixed":
        return float(log_summed(machine, 0, visible).max())
    weights, b, c = numbers(machine, 0)
    return float((visible @ b + np.maximum(0, visible @ weights + c).sum(-1)).max())


@pytest.mark.parametrize("kind", ["max", "mixed"])
def test_the_most_probable_state_is_found_as_often_as_by_the_textbook(kind: str) -> None:
    """200 machines, paired: the matrix form may miss no state that the loop over edges finds."""
    iterations, count = 15, 200
    machines = [rounded(random_rbm(8, 4, scale=1.0, bias=1.0, seed=seed)) for seed in range(count)]
    best = np.array([exact_best(machine, kind) for machine in machines])
    weights, b, c = map(np.stack, zip(*(numbers(machine, 0) for machine in machines), strict=True))
    slow = textbook_of_many(weights, b, c, kind, iterations)[-1]
    states = zip(machines, slow.visible > 0.5, slow.hidden > 0.5, strict=True)
    if kind == "mixed":
        values = [float(log_summed(machine, 0, visible.astype(float))) for machine, visible, _ in states]
    else:
        values = [log_weight(machine, 0, visible, hidden) for machine, visible, hidden in states]
    theirs = np.abs(values - best) < 1e-6
    # Of 200 small machines with couplings of order 1, most are easy.
    assert theirs.sum() > 0.6 * count
    keys: dict[str, Any] = {"kind": kind, "tol": 0.0, "max_iter": iterations}
    for form in ("plain", "fused") if bp_kernel.library() else ("plain",):
        found = np.array([float(solve(machine, form, **keys).log_partition[0]) for machine in machines])
        assert (found < best + 1e-6).all()
        ours = np.abs(found - best) < 1e-6
        print(kind, form, theirs.sum(), ours.sum())
        assert (ours >= theirs).all(), form


@forms
def test_a_state_that_mixed_product_settles_on_cannot_be_improved_in_one_unit(form: str) -> None:
    """At a fixed point a visible belief is the exact one given all other visible units (Liu & Ihler 2013)."""
    settled = 0
    for seed in range(40):
        machine = rounded(random_rbm(7, 4, scale=1.5, bias=1.0, seed=seed))
        found = solve(machine, form, kind="mixed", tol=1e-7, max_iter=50)
        if found.status[0] != Status.CONVERGED:
            continue
        settled += 1
        state = (numpy_of(found.means[0])[0] > 0.5).astype(float)
        on, off = (np.where(np.eye(7) == 1, value, state) for value in (1.0, 0.0))
        odds = log_summed(machine, 0, on) - log_summed(machine, 0, off)
        agree(found.means[0][0], 1 / (1 + np.exp(-odds)), CLOSE[form])
    assert settled >= 20
