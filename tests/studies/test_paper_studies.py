"""The studies that follow a paper to the letter: their objectives, and what they leave free."""

from __future__ import annotations

from itertools import islice, pairwise

import fractional
import frank_wolfe_paper
import numpy as np
import pytest
import torch

torch.set_num_threads(1)


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


def test_what_is_free_fits_its_statistics_and_the_more_the_better() -> None:
    images = drawn(200, 4, 3)
    images[:, 1] = images[:, 0]
    found = {free: list(islice(fractional.grown(images, free, 0), 2))[-1] for free in fractional.FREE}
    assert set(found["nothing"].powers) == {1.0} and len(set(found["α"].powers)) == 1
    # From the same units: what has more free ends no lower.
    base = found["nothing"]
    ends = [fractional.likelihood(fractional.settled(base, images, free).prior, images) for free in fractional.FREE]
    # L-BFGS ends a little below the maximum.
    assert all(after > before - 1e-5 for before, after in pairwise(ends)) and ends[1] > ends[0] + 1e-3
