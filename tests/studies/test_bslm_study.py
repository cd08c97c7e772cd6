"""The study of BSLM on a small scale: what it measures, and how that is shown."""

from __future__ import annotations

from itertools import combinations

import bslm_paper
import pytest
import torch

from restore.learning.gradients.pseudo_likelihood import Objective, Spins

# Small matrices: threads only cost.
torch.set_num_threads(1)


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_sweeps_in_the_papers_order_are_those_of_the_loop(factor: float) -> None:
    sample, starts = bslm_paper.drawn(5, 1)
    values = bslm_paper.values_along(sample, starts[0], factor)
    objective, at = Objective(sample), Spins(*(part.clone() for part in starts[0]))
    assert next(values) == pytest.approx(objective.value(at), abs=1e-12)
    # One coordinate after the other, by the gradient at the present parameters.
    for unit in range(5):
        at.bias[unit] += factor * objective.evaluate(at).gradient.bias[unit]
    for one, two in combinations(range(5), 2):
        step = factor * objective.evaluate(at).gradient.couplings[one, two]
        at.couplings[one, two] += step
        at.couplings[two, one] += step
    assert next(values) == pytest.approx(objective.value(at), abs=1e-12)


def test_a_sequence_ends_at_the_tolerance_or_the_limit() -> None:
    sample, starts = bslm_paper.drawn(5, 1)
    cut = bslm_paper.ascent(sample, starts[0], 0, 1.0, 20)
    assert (cut.sweeps, cut.half) == (20, 1) and cut.last > bslm_paper.TOLERANCE
    start = bslm_paper.ascent(sample, starts[0], 0, 1.0, 10_000)
    assert start.sweeps < 10_000 and 0 <= start.last < bslm_paper.TOLERANCE and start.value > cut.value
