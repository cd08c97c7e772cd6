"""Belief propagation does not mind the order of units or images, the way units are counted, or parts of a batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from machines import random_rbm, seeded, with_weights
from textbook import (
    CLOSE,
    CLOSE_LOG_Z,
    agree,
    forms,
    kinds,
    numpy_of,
    precision,
    quick,
    rounded,
    same,
    small,
    solve,
    under_evidence,
    with_values,
)

from restore.errors import InputError
from restore.solvers import BeliefPropagation
from restore.solvers.messages import bp_kernel


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
