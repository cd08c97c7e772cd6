"""Belief propagation does not mind the order of units or images, the way units are counted, or parts of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from machines import random_rbm
from textbook import agree, forms, numpy_of, precision, quick, small, under_evidence

from restore.solvers import BeliefPropagation


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
