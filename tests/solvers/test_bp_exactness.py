"""Belief propagation against enumeration: exact on trees, how wrong on loops, and how often it finds the best state."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force, random_rbm
from textbook import (
    CLOSE,
    CLOSE_LOG_Z,
    agree,
    forest,
    forms,
    log_summed,
    numbers,
    numpy_of,
    precision,
    quick,
    rounded,
    small,
    solve,
    under_evidence,
    with_values,
)

from restore.priors import RBM
from restore.solvers import BeliefPropagation

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
@pytest.mark.parametrize("kind", ["sum", "max"])
@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_sums_and_maxima_are_exact_on_forests(form: str, kind: str, visible: int, hidden: int, seed: int) -> None:
    machine = forest(visible, hidden, seed)
    truth = brute_force(machine)
    solution = solve(machine, form, kind=kind, **tight(form, machine), pairs=kind == "sum")
    for mean, exact in zip(solution.means, truth.means if kind == "sum" else max_marginals(machine), strict=True):
        agree(mean[0], exact, CLOSE[form])
    if kind == "sum":
        # Where there is no edge, a pair of beliefs knows nothing of the way around.
        edges = numpy_of(machine.weights) != 0
        agree(numpy_of(solution.pairs)[edges], truth.pairs[0][edges], CLOSE[form])
    best = 0.0 if kind == "sum" else np.log(truth.probabilities.max())
    agree(solution.log_partition, np.array([truth.log_partition + best]), CLOSE_LOG_Z[form])


@forms
@pytest.mark.parametrize("hidden", [1, 2, 5, 17])
def test_mixed_product_is_exact_where_no_hidden_unit_has_two_neighbours(form: str, hidden: int) -> None:
    """Single edges and stars around visible units; each star is a part of its own."""
    for seed in range(10):
        machine = random_rbm(4, hidden, scale=2.0, bias=1.0, seed=seed)
        owner = torch.arange(hidden) % 4 if seed % 2 else torch.zeros(hidden)
        machine = rounded(with_values(machine, machine.weights * (owner == torch.arange(4)[:, None]).to(torch.float64)))
        solution = solve(machine, form, kind="mixed", tol=1e-7)
        states = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
        values = log_summed(machine, 0, states)
        assert (numpy_of(solution.means[0])[0] > 0.5).tolist() == (states[values.argmax()] == 1).tolist()
        assert float(solution.log_partition[0]) == pytest.approx(values.max(), abs=1e-5)
        # The belief in a visible unit is exact as well, hidden units being summed over.
        weights, b, c = numbers(machine, 0)
        odds = b + (np.logaddexp(0, weights + c) - np.logaddexp(0, c)).sum(-1)
        agree(solution.means[0][0], 1 / (1 + np.exp(-odds)), CLOSE[form])


# --- batches ---


@forms
@quick
@small
def test_a_batch_gives_what_each_image_alone_gives(form: str, visible: int, hidden: int, seed: int, kind: str) -> None:
    machine = precision(under_evidence(random_rbm(visible, hidden, scale=1.2, bias=1.0, seed=seed), 5, seed=seed), form)
    keys: dict[str, Any] = {"kind": kind, "max_iter": 12, "tol": 1e-3}
    pairs = kind == "sum"
    together = BeliefPropagation(**keys).solve(machine, pairs=pairs)
    alone = [BeliefPropagation(**keys).solve(machine.rows(torch.tensor([row])), pairs=pairs) for row in range(5)]
    # Bit by bit in the kernel; the plain form may be vectorised differently.
    within = 1e-9 if form == "plain" else 0.0
    for row, one in enumerate(alone):
        for mean, single in zip(together.means, one.means, strict=True):
            agree(mean[row], single[0], within)
        agree(together.log_partition[row], one.log_partition[0], 1e-9)
        agree(together.residual[row], one.residual[0], within)
        assert together.iterations[row] == one.iterations[0]
        assert together.status[row] == one.status[0]
    if pairs:
        agree(together.pairs, np.mean([numpy_of(one.pairs) for one in alone], 0), 1e-6)
