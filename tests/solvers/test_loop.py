"""The loop of all solvers: every image ends as it would alone, also beside certain and infinite ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import halves, random_evidence, random_rbm, seeded
from torch import Tensor

from restore.channels import BitFlip
from restore.fields import Fields
from restore.solvers import TAP, AdaptiveTAP, MeanField, RelaxedBeliefPropagation
from restore.solvers.loop import average_change, iterate, largest_change
from restore.solvers.solution import concatenate
from restore.status import Status
from restore.tracing import lifted, tracing


@dataclass(frozen=True)
class Linear:
    """x -> rate * x + shift, one pair per image; the answer is known image by image."""

    rate: Tensor
    shift: Tensor

    def rows(self, index: Tensor) -> Linear:
        sizes.append(len(index))
        return Linear(self.rate[index], self.shift[index])


sizes: list[int] = []


def linear_step(problem: Linear, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    watched, counter = state
    return problem.rate[:, None] * watched + problem.shift[:, None], counter + 1


def one_by_one(rate: float, shift: float, start: float, max_iter: int, tol: float) -> tuple[float, int, float, Status]:
    value = start
    for iteration in range(1, max_iter + 1):
        new = rate * value + shift
        moved, value = abs(new - value), new
        if not math.isfinite(moved):
            return value, iteration, moved, Status.DIVERGED
        if moved <= tol:
            return value, iteration, moved, Status.CONVERGED
    return value, max_iter, moved, Status.MAX_ITER


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.99, 1.0, -1.0, 2.0, 1e200, math.nan]),
            st.sampled_from([0.0, 1.0, math.inf]),
            st.sampled_from([0.0, 1.0, -3.0]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 2, 7, 60]),
    st.sampled_from([0.0, 1e-3]),
)
def test_every_image_ends_as_it_would_alone(
    images: list[tuple[float, float, float]], max_iter: int, tol: float
) -> None:
    rate, shift, start = torch.tensor(images, dtype=torch.float64).T
    state = (start[:, None].expand(-1, 3).contiguous(), torch.zeros(len(images), 1, dtype=torch.float64))
    kept = tuple(value.clone() for value in state)
    outcome = iterate(linear_step, Linear(rate, shift), state, max_iter=max_iter, tol=tol, change=largest_change(1))
    for row, image in enumerate(images):
        value, iterations, moved, status = one_by_one(*image, max_iter, tol)
        assert int(outcome.status[row]) == status
        assert int(outcome.iterations[row]) == iterations
        # A state that is not watched stops with the image as well.
        assert float(outcome.state[1][row]) == iterations
        np.testing.assert_allclose(outcome.state[0][row], [value] * 3, rtol=1e-12)
        np.testing.assert_allclose(float(outcome.residual[row]), moved, rtol=1e-9, atol=1e-13)
    assert all(torch.equal(value, before) for value, before in zip(state, kept, strict=True))


def test_the_average_change_is_the_same_for_a_part_and_for_what_repeats_it() -> None:
    draw = torch.Generator().manual_seed(0)
    new, old = (torch.rand(3, 7, generator=draw, dtype=torch.float64) for _ in range(2))
    # What else is in the state does not count.
    other = torch.full((3, 2), torch.inf)
    change = average_change((new, other), (old, -other))
    assert change.tolist() == pytest.approx([float(abs(a - b).mean()) for a, b in zip(new, old, strict=True)])
    repeated = average_change((new.repeat(1, 50),), (old.repeat(1, 50),))
    np.testing.assert_allclose(repeated, change, rtol=1e-12)
    new[1, 3] = torch.nan
    assert average_change((new,), (old,)).isnan().tolist() == [False, True, False]


def test_finished_images_are_taken_out_of_the_work() -> None:
    sizes.clear()
    rate = torch.tensor([0.99, 0.0, 0.5, 0.5, 0.9, 0.0, 0.0, 0.97], dtype=torch.float64)
    state = (torch.ones(8, 2, dtype=torch.float64), torch.zeros(8, 1, dtype=torch.float64))
    outcome = iterate(
        linear_step, Linear(rate, torch.zeros(8)), state, max_iter=1000, tol=1e-6, change=largest_change(1)
    )
    assert sizes == [3, 1]
    assert not tracing()
    assert outcome.iterations[0] > outcome.iterations[7] > outcome.iterations[4] > outcome.iterations[2]


# --- batches ---


@pytest.mark.parametrize("kind", [MeanField, TAP, RelaxedBeliefPropagation, AdaptiveTAP])
def test_certain_pixels_stay_and_the_others_are_conditioned_on_them(kind: type) -> None:
    machine = random_rbm(10, 6, scale=0.3).to(torch.float32)
    image = (torch.arange(10) % 2).float()[None]
    solution = kind().solve(machine.tilt(BitFlip(0.0).evidence(image)), image)
    assert torch.equal(solution.means[0], image)
    assert solution.variances[0].abs().max() == 0
    hidden, _ = machine.hidden.moments(machine.hidden_fields(image))
    torch.testing.assert_close(solution.means[1], hidden)
    assert solution.log_partition.dtype == torch.float64
    # With the image known there is nothing left to approximate.
    weight = -machine.tilt(BitFlip(0.0).evidence(image)).to(torch.float64).free_energy(image.double())
    torch.testing.assert_close(solution.log_partition, weight, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [MeanField, TAP, RelaxedBeliefPropagation])
@pytest.mark.parametrize("where", ["evidence", "start"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_image_that_is_not_finite_diverges_alone(kind: type, where: str, value: float) -> None:
    machine = random_rbm(6, 5, scale=0.5)
    linear = torch.randn(4, 6, generator=seeded(1), dtype=torch.float64)
    start = halves(machine, 4)
    solver = kind(max_iter=300, tol=1e-9)
    good = solver.solve(machine.tilt(Fields(linear)), start)
    broken_linear, broken_start = linear.clone(), start.clone()
    (broken_linear if where == "evidence" else broken_start)[1, 2] = value
    got = solver.solve(machine.tilt(Fields(broken_linear)), broken_start)
    if where == "evidence" and value == math.inf and kind is not RelaxedBeliefPropagation:
        # An infinite field is a certain pixel; only log Z has no number then.
        assert int(got.status[1]) == Status.CONVERGED
        assert float(got.means[0][1, 2]) == pytest.approx(1, abs=1e-8)
        assert not bool(torch.isfinite(got.log_partition[1]))
    else:
        assert int(got.status[1]) == Status.DIVERGED
        assert kind is RelaxedBeliefPropagation or int(got.iterations[1]) == 1
    for row in (0, 2, 3):
        assert int(got.status[row]) == Status.CONVERGED
        torch.testing.assert_close(got.means[0][row], good.means[0][row], rtol=0, atol=1e-8)


def test_batches_are_put_together_in_order() -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(random_evidence(5, 6))
    solver = TAP(tol=1e-10)
    whole = solver.solve(machine, halves(machine, 5))
    parts = concatenate(
        [
            solver.solve(machine.rows(torch.arange(first, last)), halves(machine, last - first))
            for first, last in ((0, 2), (2, 5))
        ]
    )
    torch.testing.assert_close(parts.means[0], whole.means[0])
    assert torch.equal(parts.iterations, whole.iterations)


def test_what_a_loop_uses_is_lifted_once_and_put_back() -> None:
    first, second = torch.zeros(2), torch.ones(3)
    change = largest_change(1)
    used, rebuilt = lifted((Linear(first, second), {"again": [first]}, change, 0.5))
    assert [id(item) for item in used] == [id(first), id(second)]
    problem, again, function, number = rebuilt((second, first))
    assert problem.rate is second and problem.shift is first and again["again"][0] is second
    assert function is change and number == 0.5
    with pytest.raises(ValueError):
        rebuilt((first,))
