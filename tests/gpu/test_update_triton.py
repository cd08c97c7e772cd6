"""The update of binary units on a GPU: interpreted, against the operations of torch, and as compiled."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import Launched, card, compiled, interpreted, needs_triton, on_card, values_of
from machines import random_rbm, seeded

from restore.fields import Fields
from restore.solvers import TAP, MeanField, layered_map
from restore.solvers.loop import State
from restore.solvers.messages import bp_kernel

pytestmark = needs_triton

NAME = "restore.solvers.update_triton"


def stepped(solver: Any, machine: Any, state: State, **patched: Any) -> State:
    with patch.multiple(layered_map, **patched), patch.dict("sys.modules", {NAME: interpreted(NAME)}):
        return solver.step(machine, state)


@settings(max_examples=12)
@given(
    st.sampled_from([TAP, MeanField]), st.sampled_from([0.0, 0.5]), st.integers(1, 3), st.booleans(), st.integers(0, 99)
)
def test_an_update_is_what_torch_computes(kind: Any, damping: float, images: int, own: bool, seed: int) -> None:
    """With biases for all images, or of each; with one image, whose biases may be either."""
    machine = random_rbm(7, 5, dtype=torch.float32, seed=seed)
    if own:
        machine = machine.tilt(Fields(3 * torch.randn(images, 7, generator=seeded(seed))))
    solver = kind(damping=damping)
    state = solver.init(machine, torch.rand(images, 7, generator=seeded(seed)))
    wanted = solver.step(machine, solver.step(machine, state))
    found = stepped(solver, machine, state, _fusible=lambda state: True)
    found = stepped(solver, machine, found, _fusible=lambda state: True)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-6)


def test_on_the_card_it_is_launched_unless_a_gradient_passes() -> None:
    from restore.solvers import update_triton

    launched = Launched()
    machine = random_rbm(7, 5, dtype=torch.float32)
    with (
        card() as mode,
        patch.object(update_triton, "bernoulli", launched),
        patch.object(bp_kernel, "usable", lambda device: True),
    ):
        there = machine.with_parameters({name: on_card(mode, value) for name, value in machine.parameters.items()})
        state = TAP().init(there, on_card(mode, torch.rand(3, 7)))
        TAP().step(there, state)
        assert not launched.grids
        with torch.no_grad():
            found = TAP().step(there, state)
        assert len(launched.grids) == 2
        for each in found:
            values_of(each)


@pytest.mark.parametrize("architecture", [80, 90])
def test_it_reads_and_writes_four_numbers_at_a_time(architecture: int) -> None:
    from restore.solvers import update_triton

    found = compiled(update_triton.bernoulli, architecture, 4, REACTS=1, BLOCK=update_triton.UNITS_PER_PROGRAM)
    assert found.spilled == 0 and found.occupancy(architecture) >= 0.5
