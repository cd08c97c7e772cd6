"""Belief propagation against enumeration: exact on trees, how wrong on loops, and how often it finds the best state."""

from __future__ import annotations

import itertools
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
    forest,
    forms,
    log_summed,
    numbers,
    numpy_of,
    rounded,
    solve,
    with_values,
)

from restore.priors import RBM

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
