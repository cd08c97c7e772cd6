"""Studies that follow a paper to the letter: BSLM and Frank-Wolfe."""

from __future__ import annotations

from itertools import combinations

import bslm_paper
import frank_wolfe_paper
import numpy as np
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


def drawn(count: int, pixels: int, seed: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    share = torch.rand(pixels, generator=draw)
    return (torch.rand(count, pixels, generator=draw) < share).double()


def test_the_gradient_of_equation_9_is_that_of_finite_differences() -> None:
    draw = np.random.default_rng(0)
    point, direction = draw.normal(size=6), draw.normal(size=6)
    arguments = (drawn(30, 5, 0), drawn(20, 5, 1), 0.5)
    step = 1e-5
    above, below = (frank_wolfe_paper.linear(point + change * direction, *arguments)[0] for change in (step, -step))
    slope = frank_wolfe_paper.linear(point, *arguments)[1]
    assert slope @ direction == pytest.approx((above - below) / (2 * step), abs=1e-7)
