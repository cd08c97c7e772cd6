"""What holds for TAP, adaptive TAP, relaxed belief propagation and mean field alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import (
    random_deep,
    random_fully_visible,
    random_machine,
    random_rbm,
    seeded,
    two_patterns,
)
from oracle import exact_moments
from refusals import refused

from restore.errors import InputError, UsageError
from restore.fields import Fields
from restore.priors import BoltzmannMachine, LayeredPrior
from restore.solvers import TAP, AdaptiveTAP, BeliefPropagation, MeanField, RelaxedBeliefPropagation, SeveralStarts
from restore.status import Status

LARGE: list[Any] = [RelaxedBeliefPropagation, AdaptiveTAP]
every_large = pytest.mark.parametrize("kind", LARGE)

# --- settings ---


@pytest.mark.parametrize(
    "wrong",
    [("max_iter", 0), ("tol", -1e-9), ("tol", math.nan), ("damping", 1.0), ("damping", -0.1), ("damping", math.nan)],
)
@pytest.mark.parametrize("kind", [MeanField, TAP, AdaptiveTAP, RelaxedBeliefPropagation, BeliefPropagation])
def test_impossible_settings_are_refused(kind: Any, wrong: tuple[str, float]) -> None:
    with refused(UsageError, wrong[0]):
        kind(**dict([wrong]))


@pytest.mark.parametrize("kind", [*LARGE, BeliefPropagation])
def test_a_limit_on_memory_makes_parts_and_no_difference(kind: Any) -> None:
    with pytest.raises(UsageError):
        kind(max_memory=0)
    machine = random_rbm(6, 5, scale=0.5).tilt(Fields(torch.randn(7, 6, generator=seeded(1)).double()))
    whole = kind().solve(machine)
    for limit in (2**13, 2**14):
        parts = kind(max_memory=limit).solve(machine)
        torch.testing.assert_close(parts.means[0], whole.means[0], rtol=0, atol=1e-12)
        assert torch.equal(parts.iterations, whole.iterations)
    with refused(InputError, "6 x 5"):
        kind(max_memory=100).solve(machine)


# --- each image as if it were alone ---

MACHINES: dict[str, Callable[[], BoltzmannMachine]] = {
    "rbm": lambda: random_rbm(7, 5, scale=0.6),
    "more-hidden": lambda: random_rbm(7, 9, scale=0.6),
    "three-layers": lambda: random_deep(7, 5, 3, scale=0.5),
    "fully-visible": lambda: random_fully_visible(7, scale=0.5),
    "grey": lambda: random_machine(("symmetric", 7), ("bernoulli", 5), ("symmetric", 3), scale=0.5),
    "spiked": lambda: random_machine(("spiked-symmetric", 7), ("bernoulli", 5), scale=0.5),
}
SOLVED = [
    *((kind, name) for kind in (MeanField, TAP) for name in MACHINES if name not in ("more-hidden", "spiked")),
    *((AdaptiveTAP, name) for name in ("rbm", "more-hidden", "fully-visible")),
    *((RelaxedBeliefPropagation, name) for name in ("rbm", "three-layers", "grey", "spiked")),
]


@pytest.mark.parametrize(("kind", "name"), SOLVED)
@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.thorough)], ids=str)
def test_a_batch_gives_what_each_image_alone_gives(kind: Any, name: str, dtype: torch.dtype) -> None:
    machine, count = MACHINES[name]().to(dtype), 11
    strength = torch.logspace(-2, 2, count, dtype=dtype)[:, None]
    linear = strength * torch.randn(count, 7, generator=seeded(1), dtype=dtype)
    quadratic = torch.rand(count, 7, generator=seeded(2), dtype=dtype)
    start = torch.rand(count, 7, generator=seeded(3), dtype=dtype)
    solver = kind(max_iter=500, tol=1e-8 if dtype is torch.float64 else 1e-5, damping=0.5)
    together = solver.solve(machine.tilt(Fields(linear, quadratic)), start)
    # Images that finish at different times make the batch shrink several times.
    assert len(together.iterations.unique()) >= 3
    near = 1e-10 if dtype is torch.float64 else 1e-4
    for row in range(0, count, 5):
        one = slice(row, row + 1)
        alone = solver.solve(machine.tilt(Fields(linear[one], quadratic[one])), start[one])
        for got, wanted in zip((*together.means, *together.variances), (*alone.means, *alone.variances), strict=True):
            torch.testing.assert_close(got[one], wanted, rtol=0, atol=near)
        torch.testing.assert_close(together.log_partition[one], alone.log_partition, rtol=1e-6, atol=1e-4)
        assert together.status[row] == alone.status[0]
        assert dtype is torch.float32 or together.iterations[row] == alone.iterations[0]


@settings(max_examples=12)
@given(
    st.sampled_from([MeanField, TAP, *LARGE]),
    st.sampled_from(["bernoulli", "spin", "symmetric", "spiked-symmetric"]),
    st.sampled_from(["bernoulli", "symmetric"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(0, 10_000),
)
def test_the_order_of_units_does_not_matter(
    kind: Any, visible: str, hidden: str, lower: int, upper: int, seed: int
) -> None:
    machine = random_machine((visible, lower), (hidden, upper), scale=0.3, seed=seed)
    turned = [torch.randperm(size, generator=seeded(seed)) for size in (lower, upper)]
    layers = tuple(
        units.with_parameters({name: value[order] for name, value in units.parameters.items()})
        for units, order in zip(machine.layers, turned, strict=True)
    )
    moved = LayeredPrior(layers, (machine.couplings[0].matrix[turned[0]][:, turned[1]],))
    plain, other = (kind(tol=1e-12).solve(each) for each in (machine, moved))
    for mean, again, order in zip(plain.means, other.means, turned, strict=True):
        torch.testing.assert_close(again, mean[:, order], rtol=0, atol=1e-10)
    torch.testing.assert_close(other.log_partition, plain.log_partition, rtol=0, atol=1e-10)


# --- the start ---


@every_large
def test_the_start_decides_between_modes(kind: Any) -> None:
    machine, patterns = two_patterns()
    solver = replace(kind(), tol=1e-9, damping=0.5)
    solution = solver.solve(machine.rows(torch.zeros(2, dtype=torch.int64)), patterns)
    assert solution.status.tolist() == [Status.CONVERGED] * 2
    assert float((solution.means[0] - patterns).abs().max()) < 0.2
    several = SeveralStarts(solver).solve(machine, patterns[None])
    torch.testing.assert_close(several.means[0][0], exact_moments(machine).visible, rtol=0, atol=0.02)
