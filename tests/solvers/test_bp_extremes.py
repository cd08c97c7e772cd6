"""Belief propagation of couplings and fields of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from machines import random_rbm, seeded
from textbook import (
    CLOSE,
    CLOSE_LOG_Z,
    agree,
    forms,
    kinds,
    needs_kernel,
    numpy_of,
    precision,
    rounded,
    same,
    solve,
    textbook,
    under_evidence,
    with_values,
)

from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import BeliefPropagation
from restore.status import Status


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
    solution = BeliefPropagation(**keys).solve(with_values(machine, visible=broken[0], hidden=broken[1]))
    wanted = BeliefPropagation(**keys).solve(machine)
    assert solution.status[2] == Status.DIVERGED
    for values in (*solution.means, *solution.variances, solution.log_partition, solution.residual):
        assert torch.isnan(values[2]).all()
    others = torch.tensor([0, 1, 3])
    for one, other in zip(
        (*solution.means, solution.log_partition, solution.status, solution.iterations),
        (*wanted.means, wanted.log_partition, wanted.status, wanted.iterations),
        strict=True,
    ):
        agree(one[others], other[others], 1e-12)


@forms
def test_pairs_of_a_batch_with_a_broken_image_are_not_numbers(form: str) -> None:
    machine = precision(under_evidence(random_rbm(6, 4), 4), form)
    visible = machine.layers[0].parameters["bias"].clone()
    visible[2, 1] = math.inf
    solution = BeliefPropagation().solve(with_values(machine, visible=visible), pairs=True)
    assert np.isnan(numpy_of(solution.pairs)).all()


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
