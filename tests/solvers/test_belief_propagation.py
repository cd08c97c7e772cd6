"""Belief propagation against its textbook, written out message by message below, and against the enumeration oracle."""

from __future__ import annotations

import ctypes
import itertools
import math
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force, numerical_gradients, random_rbm, seeded, with_weights
from torch import Tensor

from restore.errors import InputError, UsageError
from restore.fields import Fields
from restore.marginals import Status
from restore.priors import RBM
from restore.solvers import BeliefPropagation, Solution, bp_kernel
from restore.solvers.belief_propagation import sweep

needs_kernel = pytest.mark.skipif(bp_kernel.library() is None, reason="no C compiler that builds the fused kernel")
forms = pytest.mark.parametrize("form", ["plain", pytest.param("fused", marks=needs_kernel)])
kinds = pytest.mark.parametrize("kind", ["sum", "max", "mixed"])

# Absolute errors allowed for means and pairs, and for log Z: float64 in the plain form, float32 in the kernel.
CLOSE = {"plain": 1e-10, "fused": 2e-5}
CLOSE_LOG_Z = {"plain": 1e-9, "fused": 2e-4}


# --- the textbook ---


@dataclass
class Beliefs:
    """What one state of all messages says: means (images, units), pairs (images, D, H), two forms of log Z (images,).

    `bethe` is energy and entropy of the beliefs, right at fixed points; `log_partition` the same as a function of
    messages, which is defined for any.
    """

    visible: np.ndarray
    hidden: np.ndarray
    pairs: np.ndarray
    log_partition: np.ndarray
    bethe: np.ndarray


def total(logs: np.ndarray, axis: int = -1) -> np.ndarray:
    top = logs.max(axis, keepdims=True)
    return (top + np.log(np.exp(logs - top).sum(axis, keepdims=True))).squeeze(axis)


def entropy(logs: np.ndarray) -> np.ndarray:
    return -(np.exp(logs) * logs).sum(-1)


def textbook(machine: RBM, kind: str, iterations: int, damping: float = 0.0) -> list[Beliefs]:
    """Beliefs after 1, 2, ... iterations of belief propagation on the factor graph, edge by edge.

    Nodes i, j with factors phi(x); edges with factors psi(x_i, x_j) = exp(w x_i x_j). Messages are pairs of logs.
    """
    biases = [layer.parameters["bias"].double() for layer in machine.layers]
    images = max([len(bias) for bias in biases if bias.dim() == 2], default=1)
    weights = machine.weights.double().expand(images, -1, -1).numpy()
    return textbook_of_many(weights, *(bias.expand(images, -1).numpy() for bias in biases), kind, iterations, damping)


def textbook_of_many(
    weights: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, iterations: int, damping: float = 0.0
) -> list[Beliefs]:
    """The same for machines with a matrix of weights each, (images, D, H)."""
    images, rows, columns = len(weights), range(b.shape[1]), range(c.shape[1])
    phi_v, phi_h = ([np.stack([np.zeros(images), one], -1) for one in bias.T] for bias in (b, c))
    # psi[image, v, h]; what a factor sends to its visible and to its hidden node.
    psi = {(i, j): np.zeros((images, 2, 2)) for i in rows for j in columns}
    for i, j in psi:
        psi[i, j][:, 1, 1] = weights[:, i, j]
    down: dict[tuple[int, int], np.ndarray] = {}
    up = {edge: np.zeros((images, 2)) for edge in psi}
    reduce_ = np.max if kind == "max" else total

    def to_factor_from_hidden(i: int, j: int) -> np.ndarray:
        return phi_h[j] + sum((up[other, j] for other in rows if other != i), np.zeros(2))

    def to_factor_from_visible(i: int, j: int) -> np.ndarray:
        return phi_v[i] + sum((down[i, other] for other in columns if other != j), np.zeros(2))

    def all_down() -> None:
        for i, j in psi:
            arriving = to_factor_from_hidden(i, j)
            message = np.stack([reduce_(psi[i, j][:, v] + arriving, axis=-1) for v in (0, 1)], -1)
            down[i, j] = message - total(message)[:, None]

    def all_up() -> None:
        sent = {}
        for i, j in psi:
            arriving = to_factor_from_visible(i, j)
            if kind == "mixed":
                # Only the value that maximises the belief is summed over (Liu & Ihler 2013); of a tie, the value 0.
                belief = arriving + down[i, j]
                best = belief[:, 1] > belief[:, 0]
                message = np.where(best[:, None], psi[i, j][:, 1], psi[i, j][:, 0])
            else:
                message = np.stack([reduce_(psi[i, j][:, :, h] + arriving, axis=-1) for h in (0, 1)], -1)
            # Messages may have any common factor; damping mixes them as (0, log-odds).
            sent[i, j] = (1 - damping) * (message - message[:, :1]) + damping * up[i, j]
        up.update(sent)

    def beliefs() -> Beliefs:
        at_v = [phi_v[i] + sum(down[i, j] for j in columns) for i in rows]
        at_h = [phi_h[j] + sum(up[i, j] for i in rows) for j in columns]
        log_z = sum(map(total, at_v)) + sum(map(total, at_h))
        belief_v, belief_h = ([values - total(values)[:, None] for values in at] for at in (at_v, at_h))
        bethe = np.zeros(images)
        for i in rows:
            bethe += (np.exp(belief_v[i]) * phi_v[i]).sum(-1) + (1 - len(columns)) * entropy(belief_v[i])
        for j in columns:
            bethe += (np.exp(belief_h[j]) * phi_h[j]).sum(-1) + (1 - len(rows)) * entropy(belief_h[j])
        pairs = np.zeros_like(weights)
        for i, j in psi:
            n_v, n_h = to_factor_from_visible(i, j), to_factor_from_hidden(i, j)
            joint = (psi[i, j] + n_v[:, :, None] + n_h[:, None, :]).reshape(images, 4)
            log_z = log_z + total(joint) - total(n_v + down[i, j]) - total(n_h + up[i, j])
            joint = joint - total(joint)[:, None]
            bethe += weights[:, i, j] * np.exp(joint[:, 3]) + entropy(joint)
            pairs[:, i, j] = np.exp(joint[:, 3])
        ones = [np.stack([np.exp(belief[:, 1]) for belief in layer], -1) for layer in (belief_v, belief_h)]
        return Beliefs(*ones, pairs, log_z, bethe)

    trace = []
    all_down()
    for _ in range(iterations):
        all_up()
        all_down()
        trace.append(beliefs())
    return trace


def log_weight(machine: RBM, row: int, visible: np.ndarray, hidden: np.ndarray) -> float:
    weights, b, c = numbers(machine, row)
    return float(visible @ b + hidden @ c + visible @ weights @ hidden)


def log_summed(machine: RBM, row: int, visible: np.ndarray) -> np.ndarray:
    """log sum_h of the weights of visible states (..., D)."""
    weights, b, c = numbers(machine, row)
    return visible @ b + np.logaddexp(0, visible @ weights + c).sum(-1)


def numbers(machine: RBM, row: int) -> tuple[np.ndarray, ...]:
    biases = (layer.parameters["bias"].double().numpy() for layer in machine.layers)
    return machine.weights.double().numpy(), *(bias[row] if bias.ndim == 2 else bias for bias in biases)


# --- machines and forms ---


def precision(machine: RBM, form: str) -> RBM:
    return machine.to(torch.float64 if form == "plain" else torch.float32)


def solve(machine: RBM, form: str, *, pairs: bool = False, **keys: Any) -> Solution:
    """In float64 by the plain form, or in float32 by the kernel."""
    return BeliefPropagation(**keys).solve(precision(machine, form), pairs=pairs)


def under_evidence(machine: RBM, images: int, strength: float = 1.0, seed: int = 5, both: bool = True) -> RBM:
    drawn = [
        Fields(strength * torch.randn(images, layer.size, generator=seeded(seed + at), dtype=torch.float64))
        for at, layer in enumerate(machine.layers)
    ]
    return machine.tilt(*(drawn if both else drawn[:1]))


def rounded(machine: RBM) -> RBM:
    """With parameters that float32 can hold, so that both precisions have the same problem."""
    return machine.to(torch.float32).to(torch.float64)


def with_values(machine: RBM, weights: Tensor | None = None, **biases: Tensor) -> RBM:
    named = machine.parameters
    return machine.with_parameters(
        {
            "weights.0": named["weights.0"] if weights is None else weights,
            "units.0.bias": biases.get("visible", named["units.0.bias"]),
            "units.1.bias": biases.get("hidden", named["units.1.bias"]),
        }
    )


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


def numpy_of(values: Tensor | None) -> np.ndarray:
    assert values is not None
    return values.double().numpy()


def agree(found: Tensor | np.ndarray | None, wanted: np.ndarray | Tensor, within: float) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=within)


def same(one: Solution, other: Solution, within: float = 0.0) -> None:
    for a, b in zip((*one.means, one.log_partition), (*other.means, other.log_partition), strict=True):
        np.testing.assert_allclose(a, b, rtol=within, atol=within)
    assert torch.equal(one.iterations, other.iterations)
    assert torch.equal(one.status, other.status)
    if one.pairs is not None or other.pairs is not None:
        np.testing.assert_allclose(numpy_of(one.pairs), numpy_of(other.pairs), rtol=within, atol=within)


# --- equal to the textbook ---


@forms
@kinds
@pytest.mark.parametrize("shape", [(6, 5), (1, 4), (5, 1), (3, 18)], ids=str)
def test_every_iteration_is_that_of_the_textbook(form: str, kind: str, shape: tuple[int, int]) -> None:
    machine = rounded(under_evidence(random_rbm(*shape, scale=1.5, bias=1.0, seed=shape[0]), 3))
    trace = textbook(machine, kind, 5)
    for count, wanted in enumerate(trace, 1):
        found = solve(machine, form, kind=kind, max_iter=count, tol=0.0, pairs=kind == "sum")
        agree(found.means[0], wanted.visible, CLOSE[form])
        agree(found.means[1], wanted.hidden, CLOSE[form])
        if count >= 3:
            # The last refresh of the visible beliefs is what the next iteration begins with.
            last, middle, first = trace[count - 1], trace[count - 2], trace[count - 3]
            moved = np.abs(middle.visible - first.visible).max(-1), np.abs(last.hidden - middle.hidden).max(-1)
            agree(found.residual, np.maximum(*moved), CLOSE[form])
        if kind == "sum":
            agree(found.pairs, wanted.pairs.mean(0), CLOSE[form])
            agree(found.log_partition, wanted.log_partition, CLOSE_LOG_Z[form])


@forms
def test_convergence_waits_for_the_visible_units_too(form: str) -> None:
    """A hidden unit that is certain does not move any more, while visible ones still answer it."""
    machine = RBM.binary(torch.tensor([[3.0]]), torch.tensor([0.5]), torch.tensor([1000.0]))
    found = solve(machine, form, tol=1e-3)
    assert found.iterations.tolist() == [2]
    once = solve(machine, form, max_iter=1)
    assert float(once.residual[0]) == pytest.approx(
        float(torch.tensor([3.5]).sigmoid() - torch.tensor([0.5]).sigmoid())
    )


def test_of_two_equal_values_mixed_product_sends_zero() -> None:
    """A hidden unit that is off says nothing, so that a visible unit without a field is undecided."""
    off = RBM.binary(torch.tensor([[20.0]]), torch.zeros(1), torch.tensor([-800.0]))
    solver = BeliefPropagation("mixed", max_iter=1)
    _, _, hidden, sent = solver.step(off, solver.init(off, 1))
    assert float(sent) == 0
    assert float(hidden) == -800


@needs_kernel
def test_of_two_equal_values_the_kernel_sends_zero() -> None:
    off = RBM.binary(torch.tensor([[20.0]]), torch.zeros(1), torch.tensor([-40.0]))
    found = BeliefPropagation("mixed", max_iter=1).solve(off)
    assert float(found.means[0]) == 0.5
    assert float(found.means[1]) == pytest.approx(math.exp(-40), rel=1e-5)


@forms
@kinds
@pytest.mark.parametrize("seed", range(3))
def test_fixed_points_are_those_of_the_textbook(form: str, kind: str, seed: int) -> None:
    machine = rounded(under_evidence(random_rbm(6, 4, scale=0.6, seed=seed), 3, seed=seed))
    *_, before, wanted = textbook(machine, kind, 60)
    assert np.abs(wanted.visible - before.visible).max() < 1e-13, "the textbook itself has not settled"
    tol = 1e-14 if form == "plain" else 1e-6
    found = solve(machine, form, kind=kind, tol=tol, max_iter=200, pairs=kind == "sum")
    assert found.status.tolist() == [Status.CONVERGED] * 3
    agree(found.means[0], wanted.visible, CLOSE[form])
    agree(found.means[1], wanted.hidden, CLOSE[form])
    if kind == "sum":
        agree(found.pairs, wanted.pairs.mean(0), CLOSE[form])
        agree(wanted.log_partition, wanted.bethe, 1e-11)
        agree(found.log_partition, wanted.bethe, CLOSE_LOG_Z[form])
        # Pairwise beliefs that agree with those of single units, and variances that follow from the means.
        assert (wanted.pairs.max(1) <= wanted.hidden + 1e-12).all()
    for mean, variance in zip(found.means, found.variances, strict=True):
        agree(variance, mean * (1 - mean), 1e-7)


@forms
@pytest.mark.parametrize("kind", ["max", "mixed"])
def test_the_value_of_a_found_state_is_its_log_probability(form: str, kind: str) -> None:
    machine = rounded(under_evidence(random_rbm(6, 5, scale=1.5, bias=1.0, seed=3), 4))
    found = solve(machine, form, kind=kind, max_iter=7)
    for row in range(4):
        visible, hidden = (numpy_of(mean)[row] > 0.5 for mean in found.means)
        exact = (
            log_weight(machine, row, visible, hidden)
            if kind == "max"
            else log_summed(machine, row, visible.astype(float))
        )
        assert float(found.log_partition[row]) == pytest.approx(exact, abs=1e-9)


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
@settings(deadline=None, max_examples=25)
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
@settings(deadline=None, max_examples=25)
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
    keys: dict[str, Any] = {"tol": 0.0, "max_iter": 150}
    found = solve(machine, "plain", **keys, pairs=True)
    gradients = numerical_gradients(lambda moved: solve(moved, "plain", **keys).log_partition, machine)
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


# --- symmetries ---

small = given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6), st.sampled_from(["sum", "max", "mixed"]))
quick = settings(deadline=None, max_examples=20)


@forms
@quick
@small
def test_the_order_of_units_does_not_matter(form: str, visible: int, hidden: int, seed: int, kind: str) -> None:
    machine = rounded(under_evidence(random_rbm(visible, hidden, scale=1.0, bias=1.0, seed=seed), 2, seed=seed))
    at = [torch.randperm(size, generator=seeded(seed)) for size in (visible, hidden)]
    moved = with_values(
        machine,
        machine.weights[at[0]][:, at[1]],
        visible=machine.parameters["units.0.bias"][:, at[0]],
        hidden=machine.parameters["units.1.bias"][:, at[1]],
    )
    keys: dict[str, Any] = {"kind": kind, "max_iter": 4, "tol": 0.0, "pairs": kind == "sum"}
    one, other = solve(machine, form, **keys), solve(moved, form, **keys)
    for mean, moved_mean, order in zip(one.means, other.means, at, strict=True):
        agree(mean[:, order], moved_mean, CLOSE[form])
    agree(one.log_partition, other.log_partition, CLOSE_LOG_Z[form])
    if kind == "sum":
        agree(numpy_of(one.pairs)[np.ix_(*map(np.asarray, at))], numpy_of(other.pairs), CLOSE[form])


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


@forms
@quick
@small
def test_flipping_units_flips_the_solution(form: str, visible: int, hidden: int, seed: int, kind: str) -> None:
    """x -> 1 - x: weights and bias of the unit change sign, and its neighbours get the old weights as bias."""
    machine = random_rbm(visible, hidden, scale=0.9 / math.sqrt(max(visible, hidden)), bias=1.0, seed=seed)
    flip_v, flip_h = (torch.rand(size, generator=seeded(seed + 1)) < 0.5 for size in (visible, hidden))
    keys: dict[str, Any] = {"kind": kind, "tol": 1e-14 if form == "plain" else 1e-6, "max_iter": 300}
    if kind == "sum":
        # The messages of the start are not symmetric under flips of visible units, but a unique fixed point is. Weights
        # w are couplings w/4 of spins; where no unit's sum to more than .8 messages contract (Mooij & Kappen 2007).
        around = max(float(machine.weights.abs().sum(layer).max()) for layer in (0, 1))
        machine = with_weights(machine, min(1.0, 4 * 0.8 / around))
    else:
        # There may be several fixed points, but flips of hidden units keep every step of the way to one of them.
        flip_v = torch.zeros(visible, dtype=torch.bool)
        keys |= {"tol": 0.0, "max_iter": 4}
    sign_v, sign_h = (1 - 2 * flip.double() for flip in (flip_v, flip_h))
    weights, bias_v, bias_h = machine.weights, *(layer.parameters["bias"] for layer in machine.layers)
    flipped = with_values(
        machine,
        sign_v[:, None] * weights * sign_h,
        visible=sign_v * (bias_v + weights @ flip_h.double()),
        hidden=sign_h * (bias_h + flip_v.double() @ weights),
    )
    constant = float(bias_v @ flip_v.double() + bias_h @ flip_h.double() + flip_v.double() @ weights @ flip_h.double())
    one, other = solve(machine, form, **keys), solve(flipped, form, **keys)
    agree(np.where(flip_v, 1 - numpy_of(one.means[0]), numpy_of(one.means[0])), other.means[0], 10 * CLOSE[form])
    agree(np.where(flip_h, 1 - numpy_of(one.means[1]), numpy_of(one.means[1])), other.means[1], 10 * CLOSE[form])
    agree(one.log_partition, numpy_of(other.log_partition) + constant, 1e-5 if form == "plain" else 1e-3)


@forms
@quick
@small
def test_units_without_couplings_are_independent_after_one_iteration(
    form: str, visible: int, hidden: int, seed: int, kind: str
) -> None:
    machine = rounded(under_evidence(random_rbm(visible, hidden, scale=0.0, bias=3.0, seed=seed), 2, seed=seed))
    found = solve(machine, form, kind=kind, tol=0.0, pairs=kind == "sum")
    assert found.iterations.tolist() == [1, 1]
    assert found.residual.tolist() == [0, 0]
    biases = [layer.parameters["bias"].numpy() for layer in machine.layers]
    for mean, bias in zip(found.means, biases, strict=True):
        agree(mean, 1 / (1 + np.exp(-bias)), 1e-6)
    if kind == "sum":
        agree(found.log_partition, sum(np.logaddexp(0, bias).sum(-1) for bias in biases), 1e-5)
        agree(found.pairs, (numpy_of(found.means[0]).T @ numpy_of(found.means[1])) / 2, 1e-6)


# --- extremes ---


@forms
@kinds
@pytest.mark.parametrize("largest", [12.0, 29.0])
@pytest.mark.parametrize("strength", [1.0, 30.0, 1000.0])
def test_strong_couplings_and_fields_keep_to_the_textbook(
    form: str, kind: str, largest: float, strength: float
) -> None:
    machine = random_rbm(5, 7, seed=int(largest))
    weights = largest * machine.weights / machine.weights.abs().max()
    machine = rounded(under_evidence(with_values(machine, weights), 4, strength))
    trace = textbook(machine, kind, 3)
    for count, wanted in enumerate(trace, 1):
        found = solve(machine, form, kind=kind, tol=0.0, max_iter=count, pairs=kind == "sum")
        # Beliefs of up to 1000 nats: the digits of float32 in them are 1e-4.
        agree(found.means[0], wanted.visible, 10 * CLOSE[form])
        agree(found.means[1], wanted.hidden, 10 * CLOSE[form])
        if kind == "sum":
            agree(found.pairs, wanted.pairs.mean(0), 10 * CLOSE[form])
            np.testing.assert_allclose(found.log_partition, wanted.log_partition, rtol=1e-6, atol=CLOSE_LOG_Z[form])


@forms
@kinds
@pytest.mark.parametrize("weight", [29.0, -29.0, 3.0])
@pytest.mark.parametrize("shape", [(200, 3), (3, 200)], ids=str)
def test_products_of_many_large_messages_keep_their_digits(
    form: str, kind: str, weight: float, shape: tuple[int, int]
) -> None:
    """Units of the larger layer are certain; the others' fields all but cancel the sum of their messages."""
    many, few = max(shape), min(shape)
    certain = torch.full((many,), 1000.0 + few * 30).double()
    undecided = torch.linspace(-2, 2, few).double() - many * weight
    fields = (certain, undecided) if shape[0] == many else (undecided, certain)
    machine = rounded(RBM.binary(torch.full(shape, weight).double(), *fields))
    found = solve(machine, form, kind=kind, tol=1e-6, max_iter=20, pairs=kind == "sum")
    assert found.status.tolist() == [Status.CONVERGED]
    small = 1 if shape[0] == many else 0
    agree(found.means[1 - small], np.ones((1, many)), 1e-7)
    # Fields of 5800 are known to 2.4e-4, but these are multiples of that; products of 200 messages to 200 * 1e-7.
    odds = machine.layers[small].parameters["bias"] + many * weight
    agree(found.means[small][0], torch.sigmoid(odds), 1e-10 if form == "plain" else 1e-4)
    if kind == "sum":
        pairs = numpy_of(found.pairs)
        agree(pairs if small else pairs.T, np.tile(torch.sigmoid(odds).numpy(), (many, 1)), 1e-4)
        exact = float(machine.layers[1 - small].parameters["bias"].sum() + np.logaddexp(0, odds.numpy()).sum())
        np.testing.assert_allclose(found.log_partition, [exact], rtol=1e-7 if form == "fused" else 1e-12)


@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("largest", [29.0, 30.0, 31.0, 1000.0])
@pytest.mark.parametrize("shape", [(1, 1), (40, 33)], ids=str)
def test_everything_is_finite(kind: str, dtype: torch.dtype, largest: float, shape: tuple[int, int]) -> None:
    machine = random_rbm(*shape, seed=3)
    machine = with_values(machine, largest * machine.weights / machine.weights.abs().max())
    machine = under_evidence(machine, 3, 1000.0).to(dtype)
    found = BeliefPropagation(kind, max_iter=20).solve(machine, pairs=kind == "sum")
    for values in (*found.means, *found.variances, found.log_partition, found.residual):
        assert torch.isfinite(values).all()
    for mean in found.means:
        assert float(mean.min()) >= 0
        assert float(mean.max()) <= 1
    assert Status.DIVERGED not in found.status


@needs_kernel
def test_the_kernel_is_used_where_it_fits_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    run = bp_kernel.run
    monkeypatch.setattr(bp_kernel, "run", lambda *args, **keys: used.append(1) or run(*args, **keys))
    machine = random_rbm(4, 3, dtype=torch.float32)
    cases = [
        (machine, {}, 1),
        (with_values(machine, machine.weights * 0 + 30), {}, 1),
        (with_values(machine, machine.weights * 0 - 30.01), {}, 0),
        (with_values(machine, machine.weights * 0 + 1000), {}, 0),
        (machine.to(torch.float64), {}, 0),
        (machine, {"damping": 0.5}, 0),
    ]
    for case, keys, times in cases:
        used.clear()
        BeliefPropagation(max_iter=3, **keys).solve(case)
        assert len(used) == times


@needs_kernel
@kinds
@pytest.mark.parametrize("shape", [(1, 1), (1, 20), (20, 1), (7, 15), (7, 16), (7, 17), (33, 48)], ids=str)
@pytest.mark.parametrize("images", [1, 3, 9])
def test_threads_share_a_batch_of_any_size(kind: str, shape: tuple[int, int], images: int) -> None:
    machine = under_evidence(random_rbm(*shape, scale=0.7), images).to(torch.float32)
    largest = bp_kernel.largest_weight(machine.weights)
    assert largest == float(machine.weights.abs().max())
    rule = bp_kernel.Rule(kind, max_iter=6, tol=0.0)
    fields = [layer.parameters["bias"] for layer in machine.layers]
    one, *others = (
        bp_kernel.run(machine.weights, *fields, rule, largest=largest, threads=threads, pairs=True)
        for threads in (1, 2, 4, 50)
    )
    for other in others:
        for name in ("visible", "hidden", "iterations", "residual"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
        assert (one.log_partition is None) == (other.log_partition is None) == (kind != "sum")
        assert one.log_partition is None or torch.equal(one.log_partition, other.log_partition)
        torch.testing.assert_close(one.pairs, other.pairs, rtol=1e-6, atol=1e-6)
    plain = BeliefPropagation(kind, 6, 0.0)._plain(machine, images, kind == "sum")  # type: ignore[arg-type]
    torch.testing.assert_close(one.visible, plain.means[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(one.hidden, plain.means[1], rtol=0, atol=1e-4)
    if kind == "sum":
        assert one.pairs is not None
        assert plain.pairs is not None
        torch.testing.assert_close(one.pairs / images, plain.pairs, rtol=0, atol=1e-4)
        torch.testing.assert_close(one.log_partition, plain.log_partition, rtol=1e-5, atol=1e-3)


@forms
@kinds
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_image_with_infinite_fields_diverges_alone(form: str, kind: str, layer: int, value: float) -> None:
    machine = precision(under_evidence(random_rbm(6, 4), 4), form)
    broken = [unit.parameters["bias"].clone() for unit in machine.layers]
    broken[layer][2, 1] = value
    keys: dict[str, Any] = {"kind": kind, "max_iter": 40}
    found = BeliefPropagation(**keys).solve(with_values(machine, visible=broken[0], hidden=broken[1]))
    wanted = BeliefPropagation(**keys).solve(machine)
    assert found.status[2] == Status.DIVERGED
    for values in (*found.means, *found.variances, found.log_partition, found.residual):
        assert torch.isnan(values[2]).all()
    others = torch.tensor([0, 1, 3])
    for one, other in zip(
        (*found.means, found.log_partition, found.status, found.iterations),
        (*wanted.means, wanted.log_partition, wanted.status, wanted.iterations),
        strict=True,
    ):
        agree(one[others], other[others], 1e-12)


@forms
def test_pairs_of_a_batch_with_a_broken_image_are_not_numbers(form: str) -> None:
    machine = precision(under_evidence(random_rbm(6, 4), 4), form)
    visible = machine.layers[0].parameters["bias"].clone()
    visible[2, 1] = math.inf
    found = BeliefPropagation().solve(with_values(machine, visible=visible), pairs=True)
    assert np.isnan(numpy_of(found.pairs)).all()


@forms
def test_finite_fields_of_any_size_are_certainty(form: str) -> None:
    """Far above what the exponents of the kernel can hold."""
    machine = precision(random_rbm(5, 3), form)
    for size in (1e6, 1e9, 1e10, 1e30):
        fields = torch.tensor([[1.0, -1, 1, -1, 1]]).to(machine.weights) * size
        found = BeliefPropagation().solve(machine.tilt(Fields(fields)))
        assert found.status.tolist() == [Status.CONVERGED]
        agree(found.means[0], (fields > 0).double().numpy(), 1e-7)
        inputs = machine.hidden.parameters["bias"] + (fields > 0).to(fields) @ machine.weights
        agree(found.means[1], torch.sigmoid(inputs), 1e-6)
        np.testing.assert_allclose(numpy_of(found.log_partition), 3 * size, rtol=1e-5)


@needs_kernel
def test_fields_in_another_precision_than_the_weights_are_understood() -> None:
    machine = random_rbm(6, 4, dtype=torch.float32)
    evidence = torch.randn(3, 6, generator=seeded(), dtype=torch.float64)
    found = BeliefPropagation(max_iter=5).solve(machine.tilt(Fields(evidence)))
    wanted = BeliefPropagation(max_iter=5).solve(machine.tilt(Fields(evidence.float())))
    same(found, wanted, 1e-6)


@forms
def test_fields_of_one_image_serve_a_batch_of_the_other_layer(form: str) -> None:
    machine = precision(under_evidence(random_rbm(6, 4), 3), form)
    one = with_values(machine, visible=machine.layers[0].parameters["bias"][:1])
    wide = with_values(machine, visible=machine.layers[0].parameters["bias"][:1].expand(3, -1).contiguous())
    same(BeliefPropagation().solve(one, pairs=True), BeliefPropagation().solve(wide, pairs=True), 1e-12)


# --- memory and settings ---


@forms
@kinds
def test_parts_of_a_batch_give_what_the_whole_gives(form: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = precision(under_evidence(random_rbm(9, 5, scale=0.6), 11), form)
    pairs = kind == "sum"
    whole = BeliefPropagation(kind).solve(machine, pairs=pairs)  # type: ignore[arg-type]
    one = bp_kernel.memory(machine.weights, pairs) if form == "fused" else 8 * 9 * 5 * 8
    seen = []
    plain = BeliefPropagation._plain
    monkeypatch.setattr(
        BeliefPropagation, "_plain", lambda self, rows, size, both: seen.append(size) or plain(self, rows, size, both)
    )
    for fitting in (1, 2, 4, 11):
        seen.clear()
        limited = BeliefPropagation(kind, max_memory=fitting * one + 1)  # type: ignore[arg-type]
        same(whole, limited.solve(machine, pairs=pairs), 1e-6)
        if form == "plain":
            assert max(seen) == fitting
            assert sum(seen) == 11
    with pytest.raises(InputError) as caught:
        BeliefPropagation(kind, max_memory=one - 1).solve(machine, pairs=pairs)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert "9 x 5" in str(caught.value)
    assert "--max-memory" in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_iter": 0},
        {"tol": -1e-9},
        {"tol": math.nan},
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": math.nan},
        {"max_memory": 0},
        {"kind": "product"},
    ],
    ids=str,
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))) as caught:
        BeliefPropagation(**wrong)
    assert "\n" not in str(caught.value)


@forms
def test_an_empty_batch_is_refused(form: str) -> None:
    machine = precision(random_rbm(4, 3), form)
    with pytest.raises(UsageError, match="batch of 0"):
        BeliefPropagation().solve(machine.tilt(Fields(torch.zeros(0, 4).to(machine.weights))))


@pytest.mark.parametrize("kind", ["max", "mixed"])
def test_pairs_come_from_sum_product_only(kind: Any) -> None:
    with pytest.raises(UsageError, match=f"{kind}-product"):
        BeliefPropagation(kind).solve(random_rbm(4, 3), pairs=True)


class Other:
    """Units of some other kind."""

    size = 3


@pytest.mark.parametrize("layer", [0, 1])
def test_other_units_than_binary_ones_are_refused(layer: int) -> None:
    machine = random_rbm(3, 3)
    layers = [*machine.layers]
    layers[layer] = Other()  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="binary units, not for Other"):
        BeliefPropagation().solve(replace(machine, layers=tuple(layers)))


@forms
@kinds
def test_any_limits_give_an_answer(form: str, kind: Any) -> None:
    """An infinite tolerance stops after one iteration; a limit beyond 32 bits is one."""
    machine = random_rbm(4, 3, scale=0.4)
    loose = solve(machine, form, kind=kind, tol=math.inf)
    assert loose.iterations.tolist() == [1]
    same(replace(loose, status=loose.status * 0 + 1), solve(machine, form, kind=kind, max_iter=1, tol=0.0), 1e-9)
    same(solve(machine, form, kind=kind, max_iter=2**32 + 1), solve(machine, form, kind=kind), 1e-9)


# --- without the kernel ---


@needs_kernel
@kinds
def test_without_a_compiler_answers_are_the_same(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of the size of MNIST's, with evidence of 10 % flips. Max-product need not settle on it."""
    machine = random_rbm(784, 64, scale=0.1, bias=1.0, dtype=torch.float32)
    evidence = 2.2 * torch.randn(4, 784, generator=seeded(1)).sign()
    machine = machine.tilt(Fields(evidence))
    limits = {"tol": 0.0, "max_iter": 6} if kind == "max" else {"tol": 1e-5, "max_iter": 100}
    keys: dict[str, Any] = {"kind": kind, **limits}
    fused = BeliefPropagation(**keys).solve(machine, pairs=kind == "sum")
    monkeypatch.setattr(bp_kernel, "library", lambda: None)
    plain = BeliefPropagation(**keys).solve(machine, pairs=kind == "sum")
    assert torch.equal(fused.status, plain.status)
    assert fused.status.tolist() == [Status.MAX_ITER if kind == "max" else Status.CONVERGED] * 4
    for one, other in zip(fused.means, plain.means, strict=True):
        agree(one, other, 1e-4)
    np.testing.assert_allclose(fused.log_partition, plain.log_partition, rtol=1e-6, atol=1e-3)
    if kind == "sum":
        agree(fused.pairs, numpy_of(plain.pairs), 1e-4)


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cache without kernels; what is built in it is forgotten afterwards."""
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    bp_kernel.library.cache_clear()
    yield tmp_path / "restore" / "kernels"
    bp_kernel.library.cache_clear()


@needs_kernel
def test_a_compiler_that_fails_is_passed_over(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", shutil.which("false") or "/bin/false")
    assert isinstance(bp_kernel.library(), ctypes.CDLL)
    assert [path.suffix for path in unbuilt.iterdir()] == [".so"]


def test_where_no_compiler_works_there_is_no_kernel(
    unbuilt: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cc", "gcc", "clang"):
        # It knows its version but compiles nothing, as one without headers does.
        (folder / name).write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1.0 && exit 0\nexit 1\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    assert bp_kernel.library() is None
    found = BeliefPropagation().solve(random_rbm(4, 3, dtype=torch.float32))
    assert found.status.tolist() == [Status.CONVERGED]
    assert list(unbuilt.iterdir()) == []
    monkeypatch.setenv("PATH", str(tmp_path))
    bp_kernel.library.cache_clear()
    assert bp_kernel.library() is None


@needs_kernel
def test_without_a_cache_the_kernel_is_built_for_the_process(
    unbuilt: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unbuilt.parent.mkdir()
    unbuilt.write_text("in the way")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert isinstance(bp_kernel.library(), ctypes.CDLL)
    machine = random_rbm(4, 3, dtype=torch.float32)
    assert BeliefPropagation().solve(machine).status.tolist() == [Status.CONVERGED]
    assert list(temporary.iterdir()) == []


def test_without_any_folder_to_build_in_there_is_no_kernel(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unbuilt.parent.mkdir()
    unbuilt.write_text("in the way")
    monkeypatch.setattr(tempfile, "tempdir", str(unbuilt))
    assert bp_kernel.library() is None


# --- damping and fusing ---


@kinds
def test_damping_keeps_a_share_of_the_old_messages(kind: str) -> None:
    machine = under_evidence(random_rbm(5, 4, scale=1.5, bias=1.0), 2)
    for count, wanted in enumerate(textbook(machine, kind, 5, damping=0.3), 1):
        found = solve(machine, "plain", kind=kind, damping=0.3, max_iter=count, tol=0.0)
        agree(found.means[0], wanted.visible, 1e-11)
        agree(found.means[1], wanted.hidden, 1e-11)


@pytest.mark.parametrize("kind", ["sum", "max"])
def test_damping_does_not_move_the_fixed_point(kind: str) -> None:
    machine = under_evidence(random_rbm(7, 5, scale=0.5), 3)
    keys: dict[str, Any] = {"kind": kind, "tol": 1e-14, "max_iter": 2000, "pairs": kind == "sum"}
    straight, slow = (solve(machine, "plain", **keys, damping=damping) for damping in (0.0, 0.8))
    assert (slow.iterations > straight.iterations).all()
    for one, other in zip((*straight.means, straight.log_partition), (*slow.means, slow.log_partition), strict=True):
        agree(one, other, 1e-10)
    if kind == "sum":
        agree(straight.pairs, numpy_of(slow.pairs), 1e-10)


@pytest.mark.slow
@needs_kernel
@kinds
@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_the_sweep_can_be_compiled(kind: Any, damping: float) -> None:
    draw = seeded(4)
    weights, own, hidden, old = (
        torch.randn(*shape, generator=draw) for shape in ((30, 20), (3, 30), (3, 20), (3, 30, 20))
    )
    arguments = (weights, own, hidden, hidden + old.sum(1), old, kind, damping)
    compiled = torch.compile(sweep, dynamic=True)(*arguments)
    for one, other in zip(compiled, sweep(*arguments), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
