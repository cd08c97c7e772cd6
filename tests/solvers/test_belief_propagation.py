"""Belief propagation against its textbook, iteration by iteration, with any settings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from machines import random_rbm
from textbook import (
    CLOSE,
    CLOSE_LOG_Z,
    agree,
    forms,
    kinds,
    log_summed,
    log_weight,
    needs_kernel,
    numpy_of,
    precision,
    rounded,
    same,
    solve,
    textbook,
    under_evidence,
)

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import BeliefPropagation

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
