"""Memory of a GPU: planned before work begins, and smaller batches where the plan was wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from kernels import card
from priors import engine_of, some_images, trained

from restore.channels import BitFlip
from restore.errors import InputError
from restore.fields import Fields
from restore.inference import torch_engine
from restore.inference.devices import room
from restore.inference.torch_engine import ARRAYS_PER_ROW, Engine
from restore.solvers import BeliefPropagation, FixedPoint, Solution
from restore.zoo import TrainedPrior


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Call with the most images that fit; the sizes of all batches that are tried from then on are in the list."""
    solve = torch_engine.solve

    def recorded(most: int) -> list[int]:
        tried: list[int] = []

        def limited(prior: TrainedPrior, solver: FixedPoint, evidence: Fields) -> Solution:
            tried.append(len(evidence.linear))
            if tried[-1] > most:
                raise torch.cuda.OutOfMemoryError("made up")
            return solve(prior, solver, evidence)

        monkeypatch.setattr(torch_engine, "solve", limited)
        return tried

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return recorded


def test_batches_are_planned_for_the_memory_that_is_free(batches: Callable[[int], list[int]]) -> None:
    tried, row = batches(100), 4 * ARRAYS_PER_ROW * (12 + 6)
    with card(free=2 * 4 * row):
        Engine.of(trained(starts=1), torch.device("cuda")).restore(some_images(9), BitFlip(0.1))
    assert tried == [4, 4, 1]


def test_a_shortage_makes_batches_smaller_and_brings_results_to_the_processor(
    batches: Callable[[int], list[int]],
) -> None:
    wanted = engine_of(starts=1).restore(some_images(9), BitFlip(0.1)).means[0]
    tried = batches(3)
    with card():
        engine = Engine.of(trained(starts=1), torch.device("cuda"))
        found = engine.restore(some_images(9), BitFlip(0.1)).means[0]
        # It asks for as many as it can, and then for half until they fit.
        assert tried[0] >= 9 and tried[-7:] == [8, 4, 2, 2, 2, 2, 1]
        assert found.device.type == "cpu"
        batches(0)
        with pytest.raises(InputError):
            engine.restore(some_images(2), BitFlip(0.1))
    torch.testing.assert_close(found.real_tensor, wanted, rtol=0, atol=1e-4)


def test_results_are_joined_on_the_processor_where_there_is_no_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = engine_of(starts=1).restore(some_images(9), BitFlip(0.1))
    join = torch_engine.concatenate

    def limited(parts: list[Solution]) -> Solution:
        if any(part.means[0].device.type == "cuda" for part in parts):
            raise torch.cuda.OutOfMemoryError("made up")
        return join(parts)

    monkeypatch.setattr(torch_engine, "concatenate", limited)
    monkeypatch.setitem(torch_engine.ROWS_AT_ONCE, "cuda", 4)
    with card():
        found = Engine.of(trained(starts=1), torch.device("cuda")).restore(some_images(9), BitFlip(0.1))
        assert found.status.device.type == "cpu"
    torch.testing.assert_close(found.means[0].real_tensor, wanted.means[0], rtol=0, atol=1e-4)


def test_messages_take_half_of_what_is_free_unless_told() -> None:
    prior = trained(modes=0, starts=0)
    sums = replace(prior, description=prior.description.with_solver("sum_product"))
    assert room(torch.device("cpu")) is None
    with card(free=2000):
        for asked, limit in ((None, 1000), (300, 300)):
            solver = Engine.of(sums, torch.device("cuda"), asked).solver
            assert isinstance(solver, BeliefPropagation) and solver.max_memory == limit
