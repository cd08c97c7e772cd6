"""Several starts: which solutions count and with what weight, and the nearest modes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from machines import seeded, two_patterns
from textbook import log_likelihood

from restore.channels import BitFlip
from restore.fields import Fields
from restore.inference.torch_engine import Engine
from restore.priors import FullyVisible
from restore.priors.bits import pack
from restore.solvers import TAP, MeanField, SeveralStarts, Solution
from restore.solvers.starts import SAME, merge, nearest_modes, open_bits, repeated
from restore.status import Status


def made_up(means: list[list[float]], log_partition: list[float], status: list[int] | None = None) -> Solution:
    """Solutions of one image as a solver would return them."""
    visible = torch.tensor(means, dtype=torch.float64)
    count = len(means)
    return Solution(
        (visible,),
        (visible * (1 - visible),),
        torch.tensor(log_partition, dtype=torch.float64),
        torch.arange(1, count + 1),
        torch.linspace(1e-6, 1e-5, count, dtype=torch.float64),
        torch.tensor(status or [0] * count),
    )


def test_distinct_solutions_are_weighted_by_their_partition_function() -> None:
    solution = made_up([[0.9, 0.2], [0.1, 0.4], [0.9 + SAME / 2, 0.2]], [1.0, 2.0, 1.0])
    mixed = merge(solution, 1, 3)
    weight = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    centre = weight[0] * np.array([0.9, 0.2]) + weight[1] * np.array([0.1, 0.4])
    np.testing.assert_allclose(mixed.means[0][0], centre)
    # Of binary pixels the variance is that of the mixed probability: within the solutions plus between them.
    np.testing.assert_allclose(mixed.variances[0][0], centre * (1 - centre))
    assert float(mixed.log_partition) == pytest.approx(np.log(np.exp([1.0, 2.0]).sum()))
    assert mixed.iterations.tolist() == [3]
    assert mixed.status.tolist() == [Status.CONVERGED]


def test_a_power_flattens_the_weights_but_not_the_partition_function() -> None:
    solution = made_up([[0.9], [0.1]], [0.0, 2 * math.log(3)])
    mixed = merge(solution, 1, 2, torch.tensor([0.5]))
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(math.log(10))
    assert float(merge(solution, 1, 2, torch.tensor([0.0])).means[0]) == pytest.approx(0.5)


def test_weights_of_any_size() -> None:
    solution = made_up([[0.9], [0.1]], [-5000.0, -5000.0 + math.log(3)])
    mixed = merge(solution, 1, 2)
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(-5000 + math.log(4))


def test_only_fixed_points_count() -> None:
    # What did not converge has the highest log Z, and no say.
    solution = made_up([[0.9], [0.1], [0.5]], [0.0, math.log(3), 30.0], [0, 0, Status.MAX_ITER])
    mixed = merge(solution, 1, 3)
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(math.log(4))
    assert (mixed.status.tolist(), mixed.residual.tolist()) == ([Status.CONVERGED], solution.residual[1:2].tolist())
    # Nor does it hide the fixed point that it lies close to.
    solution = made_up([[0.9], [0.9]], [30.0, 1.0], [Status.MAX_ITER, 0])
    assert float(merge(solution, 1, 2).log_partition) == pytest.approx(1.0)


def test_an_image_without_a_fixed_point_says_so() -> None:
    stopped = int(Status.MAX_ITER)
    solution = made_up([[0.9], [0.1], [0.3], [0.7]], [0.0, math.log(3), 0.0, 5.0], [stopped, stopped, 0, stopped])
    mixed = merge(solution, 2, 2)
    assert mixed.status.tolist() == [Status.MAX_ITER, Status.CONVERGED]
    assert mixed.means[0].flatten().tolist() == pytest.approx([0.25 * 0.9 + 0.75 * 0.1, 0.3])


def test_images_none_of_whose_starts_settle_have_another_try() -> None:
    # Two units that inhibit each other: updated at once by mean field, they jump between (0, 0) and (1, 1).
    bias, coupling = torch.tensor([4.0, 4.0]), torch.tensor([[0.0, -8.0], [-8.0, 0.0]])
    machine = FullyVisible.binary(coupling.double(), bias.double())
    solver = MeanField(damping=0.0, tol=1e-6, max_iter=60)
    jumping, settling = torch.full((2,), 0.1).double(), torch.tensor([1.0, 0.0]).double()
    tilted = machine.tilt(Fields(torch.zeros(2, 2).double()))
    starts = torch.stack([torch.stack([jumping, settling]), torch.stack([jumping, jumping])])
    assert solver.solve(tilted, starts[:, 0]).status.tolist() == [Status.MAX_ITER] * 2
    solution = SeveralStarts(solver).solve(tilted, starts)
    assert solution.status.tolist() == [Status.CONVERGED] * 2
    # The first has the solution that it found at once, alone; the second one that more damping found.
    alone = solver.solve(tilted, starts[:, 1])
    torch.testing.assert_close(solution.means[0][0], alone.means[0][0])
    assert float(solution.log_partition[0]) == pytest.approx(float(alone.log_partition[0]))
    torch.testing.assert_close(solution.means[0][1], torch.full((2,), 0.5).double(), rtol=0, atol=1e-4)
    assert int(solution.iterations[1]) > solver.max_iter


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]], ids=str)
def test_diverged_starts_are_left_out_wherever_they_come(order: list[int]) -> None:
    values = [[math.nan, math.nan], [0.9, 0.2], [0.1, 0.4]]
    logs, status = [math.nan, 1.0, 2.0], [Status.DIVERGED, 0, 0]
    solution = made_up([values[i] for i in order], [logs[i] for i in order], [int(status[i]) for i in order])
    mixed, clean = merge(solution, 1, 3), merge(made_up(values[1:], logs[1:]), 1, 2)
    torch.testing.assert_close(mixed.means[0], clean.means[0])
    torch.testing.assert_close(mixed.variances[0], clean.variances[0])
    torch.testing.assert_close(mixed.log_partition, clean.log_partition)
    assert mixed.status.tolist() == [Status.CONVERGED]


def test_solutions_that_differ_at_one_pixel_of_many_are_two() -> None:
    values = torch.full((1, 2, 100), 0.9)
    values[0, 1, 7] -= 2 * SAME
    assert not bool(repeated(values, torch.ones(1, 2, dtype=torch.bool)).any())
    values[0, 1, 7] += 1.5 * SAME
    assert repeated(values, torch.ones(1, 2, dtype=torch.bool)).tolist() == [[False, True]]


def test_an_image_whose_starts_all_diverge_says_so() -> None:
    bad = made_up([[math.nan]] * 2 + [[0.3], [0.6]], [math.nan, math.nan, 0.0, 0.0], [2, 2, 0, 0])
    mixed = merge(bad, 2, 2)
    assert mixed.status.tolist() == [Status.DIVERGED, Status.CONVERGED]
    assert bool(mixed.means[0][0].isnan().all())
    assert bool(mixed.log_partition[0].isnan())
    assert float(mixed.means[0][1]) == pytest.approx(0.45)


def test_nearest_modes_are_the_likeliest_under_the_channel() -> None:
    modes = torch.bernoulli(torch.full((20, 8), 0.5), generator=seeded(1))
    observed = torch.bernoulli(torch.full((5, 8), 0.5), generator=seeded(2))
    channel = BitFlip(torch.linspace(0.05, 0.9, 8))
    chosen = nearest_modes(channel.evidence(observed).linear, pack(modes), 3)
    assert chosen.shape == (5, 3, 8)
    for y, picked in zip(observed, chosen, strict=True):
        scores = log_likelihood(channel, y.expand_as(modes), modes).sum(-1)
        wanted = scores.sort(descending=True).values[:3]
        torch.testing.assert_close(log_likelihood(channel, y.expand(3, 8), picked).sum(-1), wanted)
    assert nearest_modes(torch.zeros(5, 8), pack(modes[:2]), 3).shape == (5, 2, 8)
    assert nearest_modes(torch.zeros(5, 8), pack(modes[:0]), 3).shape == (5, 0, 8)
    assert nearest_modes(torch.zeros(5, 8), pack(modes), 0).shape == (5, 0, 8)


def test_of_modes_as_likely_the_earlier_one_is_nearer_in_any_batch() -> None:
    # Flips of one probability: the likelihood of a mode counts pixels, so that many are the same.
    modes = torch.bernoulli(torch.full((40, 11), 0.5), generator=seeded(1))
    observed = torch.bernoulli(torch.full((9, 11), 0.5), generator=seeded(2))
    evidence = BitFlip(0.3).evidence(observed).linear
    together = nearest_modes(evidence, pack(modes), 6)
    for row, y in enumerate(observed):
        apart = (modes != y).sum(1).tolist()
        wanted = modes[sorted(range(40), key=lambda mode, apart=apart: (apart[mode], mode))[:6]]
        assert torch.equal(together[row], wanted)
        assert torch.equal(nearest_modes(evidence[row : row + 1], pack(modes), 6)[0], wanted)
    # Nothing was observed: the first ones.
    assert torch.equal(nearest_modes(torch.zeros(1, 11), pack(modes), 6)[0], modes[:6])


def test_under_weak_evidence_modes_that_are_about_as_likely_count_as_equal() -> None:
    """Where no pixel says .2 nats, the choice no longer depends on an image whose evidence vanishes."""
    modes = torch.zeros(3, 9)
    modes[1, :1] = modes[2, :5] = 1  # likelier than the first by one pixel, and by five
    for strength, order in ((0.09, [2, 0, 1]), (0.01, [0, 1, 2]), (0.21, [2, 1, 0])):
        chosen = nearest_modes(torch.full((1, 9), strength), pack(modes), 3)[0]
        assert torch.equal(chosen, modes[order]), strength


def test_very_many_solutions_of_one_weight_all_have_a_say() -> None:
    count = 150
    means = torch.linspace(0, 10, count)[:, None]
    status = torch.full((count,), int(Status.CONVERGED))
    residual = torch.linspace(0, 1, count)
    solution = Solution((means,), (means * 0,), torch.zeros(count).double(), torch.arange(count), residual, status)
    assert float(merge(solution, 1, count).residual) == 1.0


def test_images_that_need_one_start_have_its_solution_and_the_others_that_of_all() -> None:
    machine, patterns = two_patterns()
    observed = patterns.repeat(3, 1).abs()
    tilted = machine.tilt(BitFlip(0.3).evidence(observed))
    starts = torch.cat([observed[:, None], patterns[None].expand(6, -1, -1)], 1)
    solver, power = TAP(tol=1e-10, max_iter=2000, damping=0.5), torch.linspace(0.1, 1, 6)
    from_all = SeveralStarts(solver).solve(tilted, starts, power)
    from_one = solver.solve(tilted, starts[:, 0])
    further = starts[:, 1:]
    for several in itertools.product([False, True], repeat=3):
        hard = torch.tensor([*several, *several])
        solution = SeveralStarts(solver).solve_where_needed(
            tilted, starts[:, 0], hard, lambda rows: further[rows], power
        )
        for got, all_, one in ((solution.means[0], from_all.means[0], from_one.means[0]),):
            torch.testing.assert_close(got, torch.where(hard[:, None], all_, one), rtol=0, atol=1e-8)
        torch.testing.assert_close(
            solution.log_partition, torch.where(hard, from_all.log_partition, from_one.log_partition), rtol=0, atol=1e-8
        )


def test_an_image_whose_one_start_does_not_settle_has_them_all() -> None:
    machine, patterns = two_patterns()
    starts = torch.cat([torch.full((1, 1, 12), torch.nan), patterns[None]], 1).to(patterns)
    solver = TAP(tol=1e-10, max_iter=2000, damping=0.5)
    wanted = SeveralStarts(solver).solve(machine, starts[:, 1:])
    solution = SeveralStarts(solver).solve_where_needed(
        machine, starts[:, 0], torch.tensor([False]), lambda rows: starts[rows, 1:], torch.ones(1)
    )
    torch.testing.assert_close(solution.means[0], wanted.means[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("p", [0.0, 0.01, 0.1, 0.3, 0.5])
def test_what_flips_leave_open_is_their_entropy(p: float) -> None:
    """Of a binary symmetric channel, under even odds: H(p) bits a pixel (Cover & Thomas, sec. 7.1.4)."""
    evidence = BitFlip(p).evidence((torch.rand(3, 35, generator=seeded(0)) < 0.5).double()).linear
    entropy = -sum(share * math.log2(share) for share in (p, 1 - p) if share)
    np.testing.assert_allclose(open_bits(evidence, (5, 7)), entropy, atol=1e-9)


def test_a_hole_leaves_open_what_it_covers_of_a_window() -> None:
    evidence = torch.full((1, 20, 20), 1000.0)
    evidence[0, 3:9, 4:8] = 0
    assert open_bits(evidence.flatten(1), (20, 20)).item() == pytest.approx(24 / 64)


# --- where evidence becomes certain or vanishes ---


@pytest.mark.parametrize("model", ["tap-mnist", "tap-mnist-100"])
@pytest.mark.parametrize(("limit", "near"), [(0.0, 1e-9), (0.5, 0.4999999), (0.5, 0.5000001), (1.0, 1 - 1e-9)])
def test_answers_have_a_limit(model: str, limit: float, near: float) -> None:
    engine = Engine.load(model, "cpu")
    observed = (torch.rand(3, 784, generator=seeded(0)) < torch.tensor([[0.05], [0.2], [0.5]])).float()
    there, close = (engine.restore(observed, BitFlip(p)).means[0] for p in (limit, near))
    torch.testing.assert_close(close, there, rtol=0, atol=1e-3)
    # At certainty the answer is the picture, or its inverse; of no evidence all pictures have one answer.
    wanted = there[:1].expand(3, -1) if limit == 0.5 else (observed if limit == 0 else 1 - observed)
    torch.testing.assert_close(there, wanted, rtol=0, atol=1e-3)
