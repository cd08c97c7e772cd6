"""Belief propagation does not mind the order of units or images, the way units are counted, or parts of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from machines import random_rbm
from textbook import (
    agree,
    forms,
    kinds,
    numpy_of,
    precision,
    quick,
    same,
    small,
    under_evidence,
)

from restore.errors import InputError
from restore.solvers import BeliefPropagation
from restore.solvers.messages import bp_kernel


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
