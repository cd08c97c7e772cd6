"""The loop that all solvers share: every image ends as it would alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from restore.solvers.loop import average_change, iterate, largest_change
from restore.status import Status
from restore.tracing import tracing


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
