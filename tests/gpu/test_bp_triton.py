"""Belief propagation's kernels for GPUs: interpreted, against the C kernel and enumeration, and as compiled."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import Launched, card, compiled, interpreted, needs_triton, on_card, values_of
from machines import brute_force, random_rbm, seeded
from textbook import agree, forest, kinds, needs_kernel, numpy_of, under_evidence

from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import BeliefPropagation
from restore.solvers.messages import bp_kernel
from restore.status import Status

pytestmark = needs_triton

NAME = "restore.solvers.messages.bp_triton"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The interpreted kernels with small tiles, so that small machines have several."""
    import triton.language as tl

    made = interpreted(NAME)
    monkeypatch.setattr(made, "EDGES", 64)
    monkeypatch.setattr(made, "SPANS", tl.constexpr(2))
    monkeypatch.setattr(made, "HIDDEN", 16)
    return made


def solved(kernels: Any, machine: RBM, pairs: bool = False, **keys: Any) -> Any:
    """A machine's solution by the interpreted kernels."""

    def run(*arguments: Any, **options: Any) -> Any:
        options = {name: value for name, value in options.items() if name not in ("largest", "threads")}
        return kernels.run(*arguments, **options)

    with patch.object(bp_kernel, "run", run):
        return BeliefPropagation(**keys).solve(machine.to(torch.float32), pairs=pairs)


@needs_kernel
@kinds
def test_it_is_what_the_c_kernel_computes(kernels: Any, kind: str) -> None:
    """One image settles before the other, and none has the tile's size."""
    evidence = [50 * torch.randn(9, generator=seeded(1)).sign(), torch.randn(9, generator=seeded(2))]
    machine = random_rbm(9, 20, scale=0.7, dtype=torch.float32).tilt(Fields(torch.stack(evidence)))
    keys: dict[str, Any] = {"kind": kind, "tol": 1e-3, "max_iter": 7}
    wanted = BeliefPropagation(**keys).solve(machine, pairs=kind == "sum")
    found = solved(kernels, machine, kind == "sum", **keys)
    assert torch.equal(found.iterations, wanted.iterations) and torch.equal(found.status, wanted.status)
    assert int(wanted.iterations[0]) < int(wanted.iterations[1])
    for one, other in zip((*found.means, found.residual), (*wanted.means, wanted.residual), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-6)
    torch.testing.assert_close(found.log_partition, wanted.log_partition, rtol=1e-6, atol=1e-5)
    if kind == "sum":
        torch.testing.assert_close(found.pairs, wanted.pairs, rtol=0, atol=2e-6)


@needs_kernel
@pytest.mark.thorough
@kinds
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3), (33, 130)], ids=str)
def test_it_is_what_the_c_kernel_computes_at_its_own_tiles(kind: str, shape: tuple[int, int]) -> None:
    machine = under_evidence(random_rbm(*shape, scale=0.4), 2).to(torch.float32)
    keys: dict[str, Any] = {"kind": kind, "tol": 0.0, "max_iter": 3}
    wanted = BeliefPropagation(**keys).solve(machine, pairs=kind == "sum")
    found = solved(interpreted(NAME), machine, kind == "sum", **keys)
    for one, other in zip(found.means, wanted.means, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)
    torch.testing.assert_close(found.log_partition, wanted.log_partition, rtol=1e-5, atol=1e-3)


@settings(max_examples=6)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_sum_product_is_exact_on_forests(visible: int, hidden: int, seed: int) -> None:
    machine = forest(visible, hidden, seed)
    truth = brute_force(machine)
    keys: dict[str, Any] = {"tol": 0.0, "max_iter": visible + hidden + 2}
    found = solved(interpreted(NAME), machine, True, **keys)
    for mean, exact in zip(found.means, truth.means, strict=True):
        agree(mean[0], exact, 1e-5)
    edges = numpy_of(machine.weights) != 0
    agree(numpy_of(found.pairs)[edges], truth.pairs[0][edges], 1e-5)
    agree(found.log_partition, np.array([truth.log_partition]), 1e-4)


@settings(max_examples=4)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_max_product_finds_the_most_probable_state_of_forests(visible: int, hidden: int, seed: int) -> None:
    machine = forest(visible, hidden, seed)
    truth = brute_force(machine)
    best = np.log(truth.probabilities.max()) + truth.log_partition
    keys: dict[str, Any] = {"kind": "max", "tol": 0.0, "max_iter": visible + hidden + 2}
    found = solved(interpreted(NAME), machine, **keys)
    assert float(found.log_partition[0]) == pytest.approx(best, abs=1e-4)


@needs_kernel
@kinds
def test_fields_and_weights_at_their_limits(kernels: Any, kind: str) -> None:
    """Odds of e^1e8 and messages of e^30, of both signs; and an image that is not finite, which harms no other."""
    signs = torch.tensor([1.0, -1.0]).repeat(5)
    machine = RBM.binary(30 * signs[:9, None] * signs[None, :10], torch.zeros(9), torch.zeros(10))
    fields = torch.stack([1e8 * signs[:9], -1e8 * signs[:9], torch.full((9,), torch.nan), 1e8 * torch.ones(9)])
    machine = machine.tilt(Fields(fields))
    wanted = BeliefPropagation(kind, max_iter=3).solve(machine)  # type: ignore[arg-type]
    found = solved(kernels, machine, kind=kind, max_iter=3)
    assert torch.equal(found.status, wanted.status) and int(found.status[2]) == Status.DIVERGED
    for one, other in zip(found.means, wanted.means, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5, equal_nan=True)
    torch.testing.assert_close(found.log_partition, wanted.log_partition, rtol=1e-6, atol=1e-2, equal_nan=True)


# --- on the card ---


@pytest.mark.parametrize("images", [2, 60])
def test_what_is_launched_is_on_the_card(images: int) -> None:
    from restore.solvers.messages import bp_triton

    names = ("tiles_once", "hidden_once", "settled", "closed", "paired")
    launched = {name: Launched() for name in names}
    machine = random_rbm(40, 20, dtype=torch.float32).tilt(Fields(torch.randn(images, 40, generator=seeded(1))))
    properties = type("Properties", (), {"multi_processor_count": 2})()
    with (
        card() as mode,
        patch.multiple(bp_triton, **launched),
        patch.object(bp_kernel, "usable", lambda device: True),
        patch.object(torch.cuda, "get_device_properties", lambda device: properties),
    ):
        there = machine.with_parameters({name: on_card(mode, value) for name, value in machine.parameters.items()})
        found = BeliefPropagation(max_iter=3).solve(there, pairs=True)
        for each in (*found.means, found.log_partition, found.iterations, found.pairs):
            values_of(each)
        once = {name for name, kernel in launched.items() if kernel.grids}
        memory = images // 2 * bp_triton.memory(there.weights, True)
        BeliefPropagation(max_iter=3, max_memory=memory).solve(there, pairs=True)
    assert [mean.shape for mean in found.means] == [(images, 40), (images, 20)]
    assert once == set(names)
    # Half of the memory takes two batches.
    assert [grid[0] for grid in launched["closed"].grids] == [images, images // 2, images // 2]


# --- compiled ---

MNIST = torch.empty(784, 256, device="meta")


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiles_once", "sum"),
        *(
            pytest.param(name, kind, marks=pytest.mark.thorough)
            for name, kind in [
                ("tiles_once", "max"),
                ("tiles_once", "mixed"),
                ("hidden_once", "sum"),
                ("closed", "sum"),
                ("paired", "sum"),
                ("settled", "sum"),
            ]
        ),
    ],
)
def test_compiled_kernels_fit_a_multiprocessor(name: str, kind: str, architecture: int) -> None:
    from restore.solvers.messages import bp_triton

    rows, columns, warps = bp_triton.shapes(MNIST)
    tile = {"ROWS": rows, "COLS": columns, "KIND": bp_kernel.KIND_CODES[kind], "COUNT": 64, "HIDDEN": bp_triton.HIDDEN}
    found = compiled(getattr(bp_triton, name), architecture, {"settled": 1, "hidden_once": 4}.get(name, warps), **tile)
    assert found.spilled == 0
    # Programs of one warp: as many of them as are planned for.
    assert found.programs(architecture) >= (1 if name in ("settled", "hidden_once") else bp_triton.BUSY)


@pytest.mark.parametrize("architecture", [80, 90])
def test_a_message_takes_four_bytes_of_memory(architecture: int) -> None:
    """Two messages for each edge in an iteration, which reads the edge's message once and writes it once."""
    from restore.solvers.messages import bp_triton

    rows, columns, warps = bp_triton.shapes(MNIST)
    found = compiled(
        bp_triton.tiles_once, architecture, warps, ROWS=rows, COLS=columns, KIND=0, HIDDEN=bp_triton.HIDDEN
    )
    # The loop over tiles is the one that adds up over the threads of a warp both a product and its exponent.
    loop = min(re.split(r"^\$L__BB\w+:", found.ptx, flags=re.MULTILINE), key=lambda text: -text.count("shfl"))
    edges = rows * columns / (32 * warps)  # of a thread, in a tile
    assert 16 * len(re.findall(r"st\.global\.v4", loop)) / edges == 4
    # A weight, which the caches hold, and a message.
    assert 16 * len(re.findall(r"ld\.global\.v4", loop)) / edges == 8
    assert 2 * edges <= loop.count("div.full") <= 2 * edges + 1


def test_wider_machines_are_for_the_operations_of_torch() -> None:
    from restore.solvers.messages import belief_propagation, bp_triton

    rows, columns, warps = bp_triton.shapes(torch.empty(10, belief_propagation.KERNEL_HIDDEN_UNITS, device="meta"))
    assert rows == 1 and columns == belief_propagation.KERNEL_HIDDEN_UNITS and warps == 32
