"""Learning by restoring: the gradient through the solver, the damage, and what such a prior is good for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from directions import assert_close, assert_slopes
from machines import bars_and_stripes, random_deep, random_machine, random_pyramid, random_rbm, seeded
from torch import Tensor

from restore.channels import parse_task
from restore.channels.views import VIEWS
from restore.fields import Fields
from restore.learning.course import RestoredImages
from restore.learning.rules.contract import Restorations
from restore.learning.rules.matched import LEAST_LOSS, LOSS_MEMORY, MatchedMarginals, surprise
from restore.priors import BoltzmannMachine, ConditionalDBM, ConvolutionalDBM, FullyVisible
from restore.registry import SOLVERS
from restore.units import Bernoulli

MACHINES: dict[str, BoltzmannMachine] = {
    "rbm": random_rbm(5, 4, seed=3),
    "deep": random_deep(4, 3, 3, scale=0.6, seed=5),
    "grey": random_machine(("truncated", 4), ("gaussian", 3), scale=0.4),
    "convolutional": ConvolutionalDBM.of(
        random_pyramid(1, 2, 2, side=3, stride=1, scale=0.15, seed=8), (2, 2), [(1, "rectified"), (1, "spin")]
    ),
    "informed": ConvolutionalDBM.of(
        random_pyramid(1, 2, 2, side=3, stride=1, scale=0.15, seed=8)
        | {f"inputs.{layer}": 0.15 * torch.randn(2, 2, 3, 3, generator=seeded(layer)).double() for layer in (1, 2)},
        (2, 2),
        [(1, "rectified"), (1, "spin")],
    ),
    "spiked": random_machine(("spiked-truncated", 4), ("bernoulli", 3), scale=0.4),
}

# The last one takes as long as all others together.
every_machine = pytest.mark.parametrize(
    "machine", [*[*MACHINES.values()][:-1], pytest.param(MACHINES["spiked"], marks=pytest.mark.thorough)], ids=MACHINES
)
both_solvers = pytest.mark.parametrize(
    "solver", [name for name, kind in SOLVERS.items() if kind.smooth and kind.coarser == 1]
)


def damaged(machine: BoltzmannMachine, count: int = 6, tasks: int = 2) -> Restorations:
    """Images under random evidence; the first half belongs to another task than the second."""
    draw, pixels = seeded(9), machine.layers[0].size
    clean = torch.rand(count, pixels, generator=draw, dtype=torch.float64)
    if isinstance(machine.layers[0], Bernoulli):
        clean = clean.round()
    linear = torch.randn(count, pixels, generator=draw, dtype=torch.float64)
    evidence = Fields(linear, torch.rand(count, pixels, generator=draw, dtype=torch.float64))
    start = torch.rand(count, pixels, generator=draw, dtype=torch.float64)
    return Restorations(clean, evidence, start, torch.arange(count) * tasks // count)


def slopes(rule: MatchedMarginals, machine: BoltzmannMachine, batch: Restorations) -> dict[str, Tensor]:
    with torch.inference_mode():
        state = rule.init(machine, batch.clean, seeded())
        return rule.step(machine, batch, state, seeded()).gradient


def balanced(
    rule: MatchedMarginals,
    machine: BoltzmannMachine,
    batch: Restorations,
    at: Tensor,
    first: BoltzmannMachine | None = None,
) -> Tensor:
    """Minus the loss of a first mini-batch, in which every task is divided by its own loss, `at`.

    The iterations before the last `rule.unrolled` are those of another machine, `first`.
    """
    solver = rule.fixed_point
    tilted = machine.tilt(batch.evidence)
    early = tilted if first is None else first.tilt(batch.evidence)
    state, scores = solver.init(early, batch.start), []
    for number in range(rule.iterations):
        if number < rule.iterations - rule.unrolled and first is not None:
            state = solver.step(early, state)
            continue
        state = solver.step(tilted, state)
        scores.append(surprise(solver, tilted, state, batch.clean))
    return -(torch.stack(scores[-rule.scored :]).mean(0) / at[batch.tasks]).mean()


def own_losses(rule: MatchedMarginals, machine: BoltzmannMachine, batch: Restorations) -> Tensor:
    one = torch.ones(2, dtype=torch.float64)
    parts = [Restorations(*(_rows(each, batch.tasks == task) for each in batch)) for task in (0, 1)]
    return torch.stack([-balanced(rule, machine, part, one) for part in parts]).clamp_min(LEAST_LOSS)


def _rows(value: Any, mine: Tensor) -> Any:
    return Fields(value.linear[mine], value.quadratic[mine]) if isinstance(value, Fields) else value[mine]


@both_solvers
@every_machine
@pytest.mark.parametrize(("iterations", "scored", "unrolled"), [(4, 1, 0), (4, 3, 0), (5, 2, 3)], ids=str)
def test_gradient_is_that_of_the_loss_after_a_few_iterations(
    machine: BoltzmannMachine, solver: str, iterations: int, scored: int, unrolled: int
) -> None:
    """It goes back through the last iterations alone, or through all."""
    rule = MatchedMarginals(("flip:0.1", "flip:0.2"), solver, iterations, scored=scored, unrolled=unrolled)
    batch, first = damaged(machine), machine if unrolled else None
    at = own_losses(rule, machine, batch)
    loss = lambda moved: balanced(rule, moved, batch, at, first)  # noqa: E731
    assert_slopes(slopes(rule, machine, batch), loss, machine, 1e-7)


def test_gradient_goes_through_both_sizes_of_a_page() -> None:
    rule = MatchedMarginals(("pages",), "two_sizes", iterations=2, scored=1, damping=0.0)
    shared = random_pyramid(1, 2, 2, side=3, stride=1, scale=0.3, seed=1)
    shared |= {
        f"inputs.{layer}": 0.15 * torch.randn(count, VIEWS, 3, 3, generator=seeded(layer)).double()
        for layer, count in enumerate((1, 2, 2))
    }
    machine = ConditionalDBM.of(shared, (3, 4), [(1, "rectified"), (1, "spin")])
    batch = damaged(machine, tasks=1)
    at = own_losses(rule, machine, batch)
    assert_slopes(slopes(rule, machine, batch), lambda moved: balanced(rule, moved, batch, at), machine, 1e-7)


@both_solvers
@every_machine
def test_implicit_gradient_is_the_unrolled_one_at_a_fixed_point(machine: BoltzmannMachine, solver: str) -> None:
    # Both solvers contract on these machines: after 80 iterations hardly anything moves.
    unrolled, implicit = (
        MatchedMarginals(("flip:0.1", "flip:0.2"), solver, 80, 1, 0.3, gradient)  # type: ignore[arg-type]
        for gradient in ("unrolled", "implicit")
    )
    batch = damaged(machine)
    assert_close(slopes(implicit, machine, batch), slopes(unrolled, machine, batch), 1e-7)


@pytest.mark.parametrize(
    "solver", [name for name, kind in SOLVERS.items() if kind.smooth and "pairwise" in kind.structures]
)
def test_gradient_of_a_fully_visible_machine_moves_each_pair_at_once(solver: str) -> None:
    upper = 0.3 * torch.randn(5, 5, generator=seeded(1), dtype=torch.float64).triu(1)
    bias = torch.randn(5, generator=seeded(2), dtype=torch.float64)
    machine = FullyVisible.binary(upper + upper.T, bias)
    rule, batch = MatchedMarginals(("flip:0.1", "flip:0.2"), solver, iterations=4), damaged(machine)
    at = own_losses(rule, machine, batch)
    got = slopes(rule, machine, batch)["weights.0"]
    small = 1e-5
    for one, other in ((0, 1), (2, 4)):
        pair = torch.zeros(5, 5, dtype=torch.float64)
        pair[one, other] = pair[other, one] = small
        above, below = (
            balanced(rule, FullyVisible.binary(machine.weights + sign * pair, bias), batch, at) for sign in (1, -1)
        )
        torch.testing.assert_close(got[one, other], (above - below) / (2 * small), rtol=0, atol=1e-8)
    assert torch.equal(got, got.T)
    assert not got.diagonal().any()


@pytest.mark.parametrize("unrolled", [0, 2])
def test_the_number_of_iterations_is_drawn_for_each_mini_batch(unrolled: int) -> None:
    """The gradient is that of one of the numbers allowed, and all have their turn."""
    machine = MACHINES["convolutional"]
    batch, tasks = damaged(machine), ("flip:0.1", "flip:0.2")
    rule = MatchedMarginals(tasks, "up_and_down", iterations=4, fewest=2, scored=2, unrolled=unrolled, damping=0.0)
    alone = {
        count: slopes(replace(rule, iterations=count, fewest=0, unrolled=min(count, unrolled)), machine, batch)[
            "weights.1"
        ]
        for count in (2, 3, 4)
    }
    met = set[int]()
    for seed in range(20):
        with torch.inference_mode():
            state = rule.init(machine, batch.clean, seeded())
            drawn = rule.step(machine, batch, state, seeded(seed)).gradient["weights.1"]
        met |= {count for count, expected in alone.items() if torch.equal(drawn, expected)}
    assert met == {2, 3, 4}
    assert not torch.allclose(alone[2], alone[4])


def test_surprise_is_the_log_probability_under_the_marginals() -> None:
    machine = MACHINES["rbm"]
    batch = damaged(machine)
    tilted, rule = machine.tilt(batch.evidence), MatchedMarginals(iterations=3, damping=0.0)
    solver = rule.fixed_point
    state = solver.init(tilted, batch.start)
    probability = solver.step(tilted, state)[0]
    # In one undamped sweep the image follows the hidden units, which have been renewed before it.
    means, variances = list(state[:2]), list(state[2:])
    means[1], variances[1] = tilted.layers[1].moments(solver.fields(tilted, 1, means, variances))
    found = surprise(solver, tilted, (*means, *variances), batch.clean)
    right = torch.where(batch.clean > 0.5, probability, 1 - probability)
    torch.testing.assert_close(found, -right.log().sum(1))


def test_tasks_count_alike_whatever_their_loss() -> None:
    machine = MACHINES["rbm"]
    batch = damaged(machine, 8)
    rule = MatchedMarginals(("flip:0.1", "flip:0.2"))
    state = {"loss": torch.tensor([0.0, 4.0], dtype=torch.float64)}
    with torch.inference_mode():
        after = rule.step(machine, batch, state, seeded()).state["loss"]
    own = own_losses(rule, machine, batch)
    # The first task is met for the first time, the second is remembered.
    torch.testing.assert_close(after, torch.stack([own[0], 4 + (own[1] - 4) / LOSS_MEMORY]))


def test_each_task_damages_its_share_of_a_mini_batch() -> None:
    images = bars_and_stripes(3).double().repeat(10, 1)
    tasks = tuple(parse_task(text) for text in ("flip:0.2", "patch:2", "flip:0.1+patch:1"))
    course = RestoredImages(
        images, image_shape=(3, 3), tasks=tasks, independent=Bernoulli(torch.zeros(9, dtype=torch.float64))
    )
    batch = course.batch(torch.arange(100), seeded())
    assert sorted(torch.bincount(batch.tasks).tolist()) == [33, 33, 34]
    assert torch.equal(batch.clean, images[:100])
    strength = batch.evidence.linear.abs()
    flips, holes, both = (strength[batch.tasks == number] for number in range(3))
    torch.testing.assert_close(flips, torch.full_like(flips, float(np.log(4))))
    assert (holes == 0).sum(1).eq(4).all() and (holes[holes > 0] > 100).all()
    assert (both == 0).sum(1).eq(1).all()
    # A hidden pixel starts at its mean, a pixel that is seen at its posterior mean.
    assert (batch.start[batch.evidence.linear == 0] == 0.5).all()
    # Fewer images than tasks: all tasks get their turn.
    met = {int(course.batch(torch.arange(1), seeded(seed)).tasks) for seed in range(40)}
    assert met == {0, 1, 2}
