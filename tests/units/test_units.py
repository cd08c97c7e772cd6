"""The contract of every unit type; a new type is one more entry of CASES in unit_cases.py."""

from __future__ import annotations

import math
from functools import cache
from itertools import cycle, product
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from machines import seeded
from torch import Tensor
from unit_cases import CASES, DIGITS, Case, Law, fields_of, mixture

from restore.errors import UsageError
from restore.fields import Fields
from restore.units import Bernoulli, Gaussian, Rectified, Spiked, TruncatedGaussian
from restore.units.contract import rows_of

# Every linear field meets every quadratic one, with some presence. The largest are what a pixel known for certain adds.
LINEAR = (-1000.0, -30.0, -3.0, -0.5, 0.0, 0.2, 2.0, 19.9, 20.1, 30.0, 1000.0)
QUADRATIC = (-1000.0, -2.0, 0.0, 0.7, 5.0, 1000.0)
PRESENCE = (0.0, -2.5, 4.0, 30.0)
MODERATE = 25.0


def every(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


every_unit = every(CASES)


def points(case: Case, limit: float = math.inf) -> list[tuple[float, float, float]]:
    """Fields (linear, quadratic, presence) up to a limit; without those under which the unit would have no integral."""
    triples = zip(product(LINEAR, QUADRATIC), cycle(PRESENCE), strict=False)
    kept = [(b, a, k) for (b, a), k in triples if max(abs(b), abs(a)) <= limit]
    return kept if case.bounded else [(b, a, k) for b, a, k in kept if a >= 0]


@cache
def truths(name: str, dtype: torch.dtype, limit: float) -> list[list[Law]]:
    """The law of both units under every one of the fields."""
    case = next(case for case in CASES if case.name == name)
    with mpmath.workdps(DIGITS):
        # Exactly representable fields, so that both sides answer the same question.
        exact = torch.tensor(points(case, limit), dtype=dtype).double().tolist()
        return [[case.truth(unit, tuple(at), dtype) for unit in (0, 1)] for at in exact]


def expected(case: Case, part: int, dtype: torch.dtype = torch.float64, limit: float = math.inf) -> Tensor:
    rows = truths(case.name, dtype, limit)
    return torch.tensor([[float(law[part]) for law in row] for row in rows], dtype=torch.float64)


def moved(fields: Fields, linear: float = 0.0, presence: float = 0.0) -> Fields:
    return Fields(fields.linear + linear, fields.quadratic, fields.presence + presence)


# --- the three functions of the fields ---


@every_unit
def test_the_truth_is_the_integral(case: Case) -> None:
    with mpmath.workdps(DIGITS):
        for at in points(case, MODERATE)[::5]:
            natural = case.natural(0, at)
            mass = sum(
                math.exp(part.log_partition - case.truth(0, at).log_partition)
                for part in case.components(natural)[: len(case.atoms)]
            )
            assert mass + (case.mesh(natural)[1].sum() if case.slab else 0) == pytest.approx(1, rel=1e-12)


@every_unit
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_log_partition_and_moments_against_arbitrary_precision(case: Case, dtype: torch.dtype) -> None:
    units, fields = case.units(dtype), fields_of(points(case), dtype)
    tolerance = 1e-6 if dtype is torch.float64 else 1e-3
    # Sums of terms of order one, which can cancel (a mean between -1 and 1, 1 - mean of a bit, a log Z near 0): no more
    # can be asked of them than rounding leaves.
    floor = 8 * torch.finfo(dtype).eps
    got = (units.log_partition(fields), *units.moments(fields))
    for part, value in enumerate(got):
        assert value.dtype == dtype
        torch.testing.assert_close(value.double(), expected(case, part, dtype), rtol=tolerance, atol=floor)
    # Z itself: an absolute error of log Z, but for the rounding of log Z.
    if dtype is torch.float64:
        torch.testing.assert_close(got[0], expected(case, 0), rtol=1e-13, atol=tolerance)


@every_unit
def test_derivatives_of_the_log_partition_are_mean_and_variance(case: Case) -> None:
    units, fields, step = case.units(), fields_of(points(case, MODERATE)), 1e-4
    mean, variance = units.moments(fields)
    up, down = moved(fields, step), moved(fields, -step)
    slope = (units.log_partition(up) - units.log_partition(down)) / (2 * step)
    bend = (units.moments(up)[0] - units.moments(down)[0]) / (2 * step)
    torch.testing.assert_close(slope, mean, rtol=0, atol=2e-8)
    torch.testing.assert_close(bend, variance, rtol=0, atol=2e-8)


@every_unit
def test_presence_multiplies_every_value_but_0(case: Case) -> None:
    units, fields, step = case.units(), fields_of(points(case, MODERATE)), 1e-5
    up, down = moved(fields, presence=step), moved(fields, presence=-step)
    slope = (units.log_partition(up) - units.log_partition(down)) / (2 * step)
    with mpmath.workdps(DIGITS):
        present = [[1 - float(case.absent(case.natural(unit, at))) for unit in (0, 1)] for at in points(case, MODERATE)]
    torch.testing.assert_close(slope, torch.tensor(present, dtype=torch.float64), rtol=0, atol=1e-8)
    # None is nothing.
    silent = Fields(fields.linear, fields.quadratic)
    zero = Fields(fields.linear, fields.quadratic, torch.zeros_like(fields.linear))
    assert torch.equal(units.log_partition(silent), units.log_partition(zero))
    for one, other in zip(units.moments(silent), units.moments(zero), strict=True):
        assert torch.equal(one, other)


# --- weights and statistics of values ---


def values_of(case: Case) -> Tensor:
    low, high = (max(-3.0, min(end, 3.0)) for end in case.support)
    inside = torch.linspace(low, high, 8, dtype=torch.float64) if case.slab else torch.empty(0, dtype=torch.float64)
    return torch.cat([torch.tensor(case.atoms, dtype=torch.float64), inside])[:, None].expand(-1, 2)


@every_unit
def test_log_weight_is_what_log_partition_normalises(case: Case) -> None:
    values, units = values_of(case), case.units()
    parameters = {name: torch.tensor(pair, dtype=torch.float64) for name, pair in case.parameters.items()}
    wanted = parameters["bias"] * values - parameters.get("quadratic", 0.0) * values**2 / 2
    wanted = wanted + parameters.get("presence", 0.0) * (values != 0)
    torch.testing.assert_close(units.log_weight(values), wanted)
    for end, beyond in zip(case.support, (-0.01, 0.01), strict=True):
        if case.slab and math.isfinite(end):
            outside = torch.full((2,), end + beyond, dtype=torch.float64)
            assert bool((units.log_weight(outside) == -math.inf).all())


@every_unit
def test_statistics_are_derivatives_of_the_log_weight(case: Case) -> None:
    values, own = values_of(case), case.units().parameters
    named = {name: value[None].expand_as(values).clone().requires_grad_() for name, value in own.items()}
    weights = case.units().with_parameters(named).log_weight(values)
    statistics = case.units().statistics(values)
    assert statistics.keys() == named.keys()
    for name, slope in zip(named, torch.autograd.grad(weights.sum(), list(named.values())), strict=True):
        torch.testing.assert_close(slope, statistics[name])


@every_unit
def test_expected_statistics_are_derivatives_of_the_log_partition(case: Case) -> None:
    units, fields, step = case.units(), fields_of(points(case, MODERATE)), 1e-5
    result = units.expected_statistics(fields)
    assert result.keys() == units.parameters.keys()
    for name, value in result.items():
        up, down = (
            units.with_parameters({**units.parameters, name: units.parameters[name] + s}) for s in (step, -step)
        )
        slope = (up.log_partition(fields) - down.log_partition(fields)) / (2 * step)
        # A second moment of a wide Gaussian is of order a thousand here.
        torch.testing.assert_close(slope, value, rtol=1e-8, atol=2e-8)


# --- modes and samples ---


@every([case for case in CASES if not (case.atoms and case.slab)])
def test_mode_is_the_heaviest_value(case: Case) -> None:
    units, fields = case.units(), fields_of(points(case))
    mode, own = units.mode(fields), units.parameters
    low, high = (max(-1500.0, min(end, 1500.0)) for end in case.support)
    grid = torch.linspace(low, high, 2001, dtype=torch.float64) if case.slab else torch.tensor(case.atoms).double()

    # A single value of a density has no weight: there, presence tells nothing.
    presence = fields.presence if case.atoms else 0.0

    def weight(values: Tensor) -> Tensor:
        linear, quadratic = own["bias"] + fields.linear, own.get("quadratic", 0.0) + fields.quadratic
        return values * (linear - quadratic * values / 2) + presence * (values != 0)

    heaviest = weight(grid[:, None, None]).amax(0)
    assert case.slab or set(mode.unique().tolist()) <= set(case.atoms)
    assert bool((mode >= case.support[0]).all() and (mode <= case.support[1]).all())
    assert bool((weight(mode) >= heaviest - 1e-12 * heaviest.abs()).all())


@every([case for case in CASES if case.atoms and case.slab])
def test_mode_beside_a_density_is_0_unless_all_other_values_together_are_likelier(case: Case) -> None:
    units, fields = case.units(), fields_of(points(case))
    with mpmath.workdps(DIGITS):
        absent = [[float(case.absent(case.natural(unit, at))) for unit in (0, 1)] for at in points(case)]
    at_zero = torch.tensor(absent) >= 0.5
    assert bool(at_zero.any()) and not bool(at_zero.all())
    torch.testing.assert_close(units.mode(fields), torch.where(at_zero, 0.0, units.slab.mode(fields)))


SAMPLED = [(-1000.0, 0.6), (-2.0, 5.0), (0.0, 0.6), (0.0, 0.0), (1.5, 200.0), (1000.0, 0.6), (0.3, -30.0), (3.0, -4.0)]


@pytest.mark.parametrize(
    ("case", "at"),
    [(case, at) for case in CASES for at in SAMPLED if case.bounded or at[1] >= 0],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_samples_follow_the_law(case: Case, at: tuple[float, float]) -> None:
    count, triple = 4_000, (*at, 0.4)
    fields = Fields(*(torch.full((count, 2), value, dtype=torch.float64) for value in triple))
    drawn = case.units().sample(fields, seeded(1))
    low, high = case.support
    assert bool((drawn >= low).all() and (drawn <= high).all())
    for unit in (0, 1):
        with mpmath.workdps(DIGITS):
            natural = case.natural(unit, triple)
            parts = case.components(natural)
            whole = mixture(parts)
        values = drawn[:, unit].numpy()
        assert abs(values.mean() - float(whole.mean)) <= 5.5 * math.sqrt(float(whole.variance) / count) + 1e-12
        # Kolmogorov and Smirnov: the largest distance of the distribution functions (bound of Dvoretzky, Kiefer,
        # Wolfowitz and Massart) exceeds this once in a million times.
        bound = math.sqrt(math.log(2e6) / (2 * count))
        edges, mass = case.mesh(natural) if case.slab else (np.array([-2.0, 2.0]), np.zeros(1))
        below = np.concatenate([[0.0], mass.cumsum()])
        for atom, part in zip(case.atoms, parts, strict=False):
            share = math.exp(part.log_partition - whole.log_partition)
            assert abs((values == atom).mean() - share) <= bound
            below = below + share * (edges >= atom)
        seen = np.searchsorted(np.sort(values), edges, side="right") / count
        assert np.abs(seen - below).max() <= bound


@every_unit
def test_samples_come_from_the_generator_given(case: Case) -> None:
    units, fields = case.units(), Fields(torch.zeros(50, 2, dtype=torch.float64))
    before = torch.random.get_rng_state()
    first, again, other = (units.sample(fields, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


# --- layers ---


@every_unit
def test_tilted_units_answer_as_under_the_field(case: Case) -> None:
    units, first = case.units(), fields_of(points(case, MODERATE))
    second = Fields(
        torch.tensor([0.3, -1.1], dtype=torch.float64),
        torch.tensor(0.4, dtype=torch.float64),
        torch.tensor(0.7, dtype=torch.float64),
    )
    tilted = units.tilt(first)
    assert tilted.size == units.size == 2
    assert tilted.support == units.support
    nothing = torch.zeros(2, dtype=torch.float64)
    # Absorbing a field may add a constant to the log-partition of one unit, never a dependence on further fields.
    gained = tilted.log_partition(second) - tilted.log_partition(Fields(nothing))
    wanted = units.log_partition(first + second) - units.log_partition(first)
    torch.testing.assert_close(gained, wanted, rtol=0, atol=1e-7)
    for got, wanted in zip(tilted.moments(second), units.moments(first + second), strict=True):
        torch.testing.assert_close(got, wanted)


@every_unit
def test_rows_take_images_of_a_batch(case: Case) -> None:
    units, index = case.units(), torch.tensor([2, 0])
    for name, value in rows_of(units, index).parameters.items():
        assert value is units.parameters[name]
    tilted = units.tilt(Fields(torch.arange(6.0, dtype=torch.float64).view(3, 2)))
    for name, value in rows_of(tilted, index).parameters.items():
        # What evidence leaves alone is still one for all images.
        assert torch.equal(value, tilted.parameters[name][index] if value.dim() > 1 else tilted.parameters[name])
    assert rows_of(tilted, index).support == units.support


@every_unit
def test_parameters_round_trip(case: Case) -> None:
    units = case.units()
    again = units.with_parameters(units.parameters)
    assert type(again) is type(units)
    assert again.support == units.support
    assert again.parameters.keys() == case.parameters.keys()
    for name, value in again.parameters.items():
        assert value.tolist() == list(case.parameters[name])


def test_fields_add() -> None:
    total = Fields(torch.tensor([1.0, 2.0]), torch.tensor(0.5)) + Fields(torch.tensor([0.5, -2.0]))
    assert total.linear.tolist() == [1.5, 0.0]
    assert float(total.quadratic) == 0.5
    assert total.presence is None
    told = Fields(torch.zeros(2), presence=torch.tensor([1.0, -1.0]))
    for both in (told + total, total + told):
        assert both.presence.tolist() == [1.0, -1.0]
    assert (told + told).presence.tolist() == [2.0, -2.0]


@pytest.mark.parametrize("log_odds", [-700.0, -30.0, 0.0, 19.0, 21.0, 25.0, 39.0, 41.0, 1000.0])
def test_the_log_partition_keeps_every_digit(log_odds: float) -> None:
    exact = mpmath.log1p(mpmath.exp(mpmath.mpf(log_odds)))
    result = float(Bernoulli(torch.tensor([log_odds], dtype=torch.float64)).log_partition(Fields(torch.zeros(1)))[0])
    assert abs(result - exact) <= 1e-15 * abs(exact)


# --- what is refused, and what is seen ---


@pytest.mark.parametrize("ends", [(1.0, 1.0), (1.0, 0.0), (0.0, math.inf), (-math.inf, 0.0), (math.nan, 1.0)], ids=str)
def test_a_support_needs_two_finite_ends(ends: tuple[float, float]) -> None:
    with pytest.raises(UsageError):
        TruncatedGaussian(torch.zeros(2), torch.zeros(2), *ends)


def test_a_spike_must_lie_in_the_support() -> None:
    with pytest.raises(UsageError):
        Spiked(torch.zeros(2), TruncatedGaussian(torch.zeros(2), torch.zeros(2), 0.5, 1.0))


@pytest.mark.parametrize("curvature", [0.0, -1.0])
@pytest.mark.parametrize(("kind", "spiked"), [(Gaussian, False), (Gaussian, True), (Rectified, False)])
def test_a_weight_without_an_integral_is_no_number(kind: type[Any], spiked: bool, curvature: float) -> None:
    units = kind(torch.ones(2), torch.tensor([1.0, curvature]))
    units = Spiked(torch.zeros(2), units) if spiked else units
    nothing = Fields(torch.zeros(5, 2))
    statistics = units.expected_statistics(nothing).values()
    answers = (units.log_partition(nothing), *units.moments(nothing), units.mode(nothing), *statistics)
    for value in (*answers, units.sample(nothing, seeded())):
        assert value.isnan().any(0).tolist() == [False, True]
        assert bool(value[:, 1].isnan().all())
