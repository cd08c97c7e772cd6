"""Studies that follow a paper to the letter: BSLM, conditional RBMs, fractional RBMs, and Frank-Wolfe."""

from __future__ import annotations

from itertools import combinations, islice, pairwise

import bslm_paper
import fractional
import frank_wolfe_paper
import numpy as np
import pytest
import torch
from crbm_noise import DrawnOnce
from machines import seeded

from restore.channels import parse_task
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


def test_an_instance_is_a_sequence_of_its_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bslm_paper.CUTS, 5, 50)
    for seed in (1, 2):
        found, (sample, starts) = bslm_paper.instance(5, seed), bslm_paper.drawn(5, seed)
        same = bslm_paper.ascent(sample, starts[0], 0, 1.0, 50)
        assert (found.sweeps, found.half, found.near, found.last) == (same.sweeps, same.half, same.near, same.last)
        assert found.bounded
    # Of 20 units nearly every sample shows some pair of pixels in three of its four states at most.
    monkeypatch.setitem(bslm_paper.CUTS, 20, 1)
    assert not all(bslm_paper.instance(20, seed).bounded for seed in range(2))


def test_a_distribution_counts_what_was_cut_off_as_longer_than_the_cut() -> None:
    cut, tolerance = bslm_paper.CUTS[15], bslm_paper.TOLERANCE
    ended = [bslm_paper.Instance(15, seed, True, 10 * seed, 1, seed, tolerance / 2) for seed in range(1, 61)]
    others = [bslm_paper.Instance(15, seed, False, cut, 2, 5, 2 * tolerance) for seed in range(40)]
    *_, row = bslm_paper.instances_table([*others, *ended]).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["15", "100", "60", "10", "60", "60", f"110 / 510 / > {cut:,}", f"11 / 51 / > {cut:,}", "2"]


# --- the study of conditional RBMs ---


def test_damage_that_is_drawn_once_is_the_same_in_every_epoch() -> None:
    images = (torch.rand(20, 784, generator=seeded(0)) < 0.3).float()
    course, index = DrawnOnce(images, images[:0], (28, 28), parse_task("flip:0.2"), seed=3), torch.arange(20)
    first, again = (course.batch(index.flip(0) if seed else index, seeded(seed)) for seed in (0, 1))
    assert torch.equal(first.observed, again.observed.flip(0)) and torch.equal(first.clean, images)
    assert 0.15 < float((first.observed != images).float().mean()) < 0.25
    assert not torch.equal(first.observed, DrawnOnce(images, images[:0], (28, 28), course.task, 4).observed)


# --- studies that follow a paper to the letter ---


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
