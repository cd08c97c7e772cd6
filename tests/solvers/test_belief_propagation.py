"""Belief propagation against the textbook and enumeration, under strong fields, and with messages of moments."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force, gaussian_answers, gaussian_machine, random_fully_visible, random_rbm, seeded
from oracle import exact_moments
from textbook import agree, forest, kinds, needs_kernel, numpy_of, rounded, total, under_evidence, with_values

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import TAP, BeliefPropagation, RelaxedBeliefPropagation, Solution
from restore.status import Status
from restore.units import Bernoulli, Gaussian

forms = pytest.mark.parametrize("form", ["plain", pytest.param("fused", marks=needs_kernel)])


# Absolute errors allowed for means and pairs, and for log Z: float64 in the plain form, float32 in the kernel.
CLOSE = {"plain": 1e-10, "fused": 2e-5}


CLOSE_LOG_Z = {"plain": 1e-9, "fused": 2e-4}


@dataclass
class Beliefs:
    """What one state of all messages says: means (images, units), pairs (images, D, H), and log Z (images,)."""

    visible: np.ndarray
    hidden: np.ndarray
    pairs: np.ndarray
    log_partition: np.ndarray


def textbook(machine: RBM, kind: str, iterations: int, damping: float = 0.0) -> list[Beliefs]:
    """Beliefs after 1, 2, ... iterations of belief propagation on the factor graph, edge by edge.

    Nodes i, j with factors phi(x); edges with factors psi(x_i, x_j) = exp(w x_i x_j). Messages are pairs of logs.
    """
    biases = [layer.parameters["bias"].double() for layer in machine.layers]
    images = max([len(bias) for bias in biases if bias.dim() == 2], default=1)
    weights = machine.weights.double().expand(images, -1, -1).numpy()
    b, c = (bias.expand(images, -1).numpy() for bias in biases)
    rows, columns = range(b.shape[1]), range(c.shape[1])
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
        pairs = np.zeros_like(weights)
        for i, j in psi:
            n_v, n_h = to_factor_from_visible(i, j), to_factor_from_hidden(i, j)
            joint = (psi[i, j] + n_v[:, :, None] + n_h[:, None, :]).reshape(images, 4)
            log_z = log_z + total(joint) - total(n_v + down[i, j]) - total(n_h + up[i, j])
            joint = joint - total(joint)[:, None]
            pairs[:, i, j] = np.exp(joint[:, 3])
        ones = [np.stack([np.exp(belief[:, 1]) for belief in layer], -1) for layer in (belief_v, belief_h)]
        return Beliefs(*ones, pairs, log_z)

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


def precision(machine: RBM, form: str) -> RBM:
    return machine.to(torch.float64 if form == "plain" else torch.float32)


def solve(machine: RBM, form: str, *, pairs: bool = False, **keys: Any) -> Solution:
    """In float64 by the plain form, or in float32 by the kernel."""
    return BeliefPropagation(**keys).solve(precision(machine, form), pairs=pairs)


def same(one: Solution, other: Solution, within: float = 0.0) -> None:
    for a, b in zip((*one.means, one.log_partition), (*other.means, other.log_partition), strict=True):
        np.testing.assert_allclose(a, b, rtol=within, atol=within)
    assert torch.equal(one.iterations, other.iterations)
    assert torch.equal(one.status, other.status)
    if one.pairs is not None or other.pairs is not None:
        np.testing.assert_allclose(numpy_of(one.pairs), numpy_of(other.pairs), rtol=within, atol=within)


small = given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6), st.sampled_from(["sum", "max", "mixed"]))


quick = settings(max_examples=20)


# --- equal to the textbook ---


@forms
@kinds
@pytest.mark.parametrize("shape", [(6, 5), (1, 4), (5, 1), (3, 18)], ids=str)
def test_every_iteration_is_that_of_the_textbook(form: str, kind: str, shape: tuple[int, int]) -> None:
    machine = rounded(under_evidence(random_rbm(*shape, scale=1.5, bias=1.0, seed=shape[0]), 3))
    trace = textbook(machine, kind, 5)
    for count, wanted in enumerate(trace, 1):
        solution = solve(machine, form, kind=kind, max_iter=count, tol=0.0, pairs=kind == "sum")
        agree(solution.means[0], wanted.visible, CLOSE[form])
        agree(solution.means[1], wanted.hidden, CLOSE[form])
        if count >= 3:
            # The last refresh of the visible beliefs is what the next iteration begins with.
            last, middle, first = trace[count - 1], trace[count - 2], trace[count - 3]
            moved = np.abs(middle.visible - first.visible).max(-1), np.abs(last.hidden - middle.hidden).max(-1)
            agree(solution.residual, np.maximum(*moved), CLOSE[form])
        if kind == "sum":
            agree(solution.pairs, wanted.pairs.mean(0), CLOSE[form])
            agree(solution.log_partition, wanted.log_partition, CLOSE_LOG_Z[form])


@forms
def test_convergence_waits_for_the_visible_units_too(form: str) -> None:
    """A hidden unit that is certain does not move any more, while visible ones still answer it."""
    machine = RBM.binary(torch.tensor([[3.0]]), torch.tensor([0.5]), torch.tensor([1000.0]))
    solution = solve(machine, form, tol=1e-3)
    assert solution.iterations.tolist() == [2]
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
    solution = BeliefPropagation("mixed", max_iter=1).solve(off)
    assert float(solution.means[0]) == 0.5
    assert float(solution.means[1]) == pytest.approx(math.exp(-40), rel=1e-5)


@forms
@pytest.mark.parametrize("kind", ["max", "mixed"])
def test_the_value_of_a_found_state_is_its_log_probability(form: str, kind: str) -> None:
    machine = rounded(under_evidence(random_rbm(6, 5, scale=1.5, bias=1.0, seed=3), 4))
    solution = solve(machine, form, kind=kind, max_iter=7)
    for row in range(4):
        visible, hidden = (numpy_of(mean)[row] > 0.5 for mean in solution.means)
        exact = (
            log_weight(machine, row, visible, hidden)
            if kind == "max"
            else log_summed(machine, row, visible.astype(float))
        )
        assert float(solution.log_partition[row]) == pytest.approx(exact, abs=1e-9)


# --- settings ---


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


# --- damping and compiling ---


@kinds
def test_damping_keeps_a_share_of_the_old_messages(kind: str) -> None:
    machine = under_evidence(random_rbm(5, 4, scale=1.5, bias=1.0), 2)
    for count, wanted in enumerate(textbook(machine, kind, 5, damping=0.3), 1):
        solution = solve(machine, "plain", kind=kind, damping=0.3, max_iter=count, tol=0.0)
        agree(solution.means[0], wanted.visible, 1e-11)
        agree(solution.means[1], wanted.hidden, 1e-11)


# --- messages of moments ---


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


# --- strong couplings and fields ---


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
        solution = solve(machine, form, kind=kind, tol=0.0, max_iter=count, pairs=kind == "sum")
        # Beliefs of up to 1000 nats: the digits of float32 in them are 1e-4.
        agree(solution.means[0], wanted.visible, 10 * CLOSE[form])
        agree(solution.means[1], wanted.hidden, 10 * CLOSE[form])
        if kind == "sum":
            agree(solution.pairs, wanted.pairs.mean(0), 10 * CLOSE[form])
            np.testing.assert_allclose(solution.log_partition, wanted.log_partition, rtol=1e-6, atol=CLOSE_LOG_Z[form])


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
    solution = solve(machine, form, kind=kind, tol=1e-6, max_iter=20, pairs=kind == "sum")
    assert solution.status.tolist() == [Status.CONVERGED]
    small = 1 if shape[0] == many else 0
    agree(solution.means[1 - small], np.ones((1, many)), 1e-7)
    # Fields of 5800 are known to 2.4e-4, but these are multiples of that; products of 200 messages to 200 * 1e-7.
    odds = machine.layers[small].parameters["bias"] + many * weight
    agree(solution.means[small][0], torch.sigmoid(odds), 1e-10 if form == "plain" else 1e-4)
    if kind == "sum":
        pairs = numpy_of(solution.pairs)
        agree(pairs if small else pairs.T, np.tile(torch.sigmoid(odds).numpy(), (many, 1)), 1e-4)
        exact = float(machine.layers[1 - small].parameters["bias"].sum() + np.logaddexp(0, odds.numpy()).sum())
        np.testing.assert_allclose(solution.log_partition, [exact], rtol=1e-7 if form == "fused" else 1e-12)


@forms
@kinds
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_image_with_infinite_fields_diverges_alone(form: str, kind: str, layer: int, value: float) -> None:
    machine = precision(under_evidence(random_rbm(6, 4), 4), form)
    broken = [unit.parameters["bias"].clone() for unit in machine.layers]
    broken[layer][2, 1] = value
    keys: dict[str, Any] = {"kind": kind, "max_iter": 40}
    tilted = with_values(machine, visible=broken[0], hidden=broken[1])
    solution = BeliefPropagation(**keys).solve(tilted, pairs=kind == "sum")
    wanted = BeliefPropagation(**keys).solve(machine)
    assert solution.status[2] == Status.DIVERGED
    for values in (*solution.means, *solution.variances, solution.log_partition, solution.residual):
        assert torch.isnan(values[2]).all()
    assert solution.pairs is None or bool(torch.isnan(solution.pairs).all())
    others = torch.tensor([0, 1, 3])
    for one, other in zip(
        (*solution.means, solution.log_partition, solution.status, solution.iterations),
        (*wanted.means, wanted.log_partition, wanted.status, wanted.iterations),
        strict=True,
    ):
        agree(one[others], other[others], 1e-12)


@forms
def test_finite_fields_of_any_size_are_certainty(form: str) -> None:
    """Far above what the exponents of the kernel can hold."""
    machine = precision(random_rbm(5, 3), form)
    for size in (1e6, 1e9, 1e10, 1e30):
        fields = torch.tensor([[1.0, -1, 1, -1, 1]]).to(machine.weights) * size
        solution = BeliefPropagation().solve(machine.tilt(Fields(fields)))
        assert solution.status.tolist() == [Status.CONVERGED]
        agree(solution.means[0], (fields > 0).double().numpy(), 1e-7)
        inputs = machine.hidden.parameters["bias"] + (fields > 0).to(fields) @ machine.weights
        agree(solution.means[1], torch.sigmoid(inputs), 1e-6)
        np.testing.assert_allclose(numpy_of(solution.log_partition), 3 * size, rtol=1e-5)


@needs_kernel
def test_fields_in_another_precision_than_the_weights_are_understood() -> None:
    machine = random_rbm(6, 4, dtype=torch.float32)
    evidence = torch.randn(3, 6, generator=seeded(), dtype=torch.float64)
    solution = BeliefPropagation(max_iter=5).solve(machine.tilt(Fields(evidence)))
    wanted = BeliefPropagation(max_iter=5).solve(machine.tilt(Fields(evidence.float())))
    same(solution, wanted, 1e-6)
