"""The contract of every unit type; a new type is one more entry of CASES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import pytest
import torch
from machines import seeded
from torch import Tensor

from restore.fields import Fields
from restore.units import Bernoulli, Units

# Every linear field meets every quadratic one. The largest are what a pixel known for certain adds.
LINEAR = (-1000.0, -30.0, -3.0, -0.5, 0.0, 0.2, 2.0, 19.9, 20.1, 30.0, 1000.0)
QUADRATIC = (-1000.0, -2.0, 0.0, 0.7, 5.0, 1000.0)
MODERATE = 25.0


@dataclass(frozen=True)
class Case:
    """A unit type.

    Attributes:
        make: from a tensor of each parameter, by name, to units.
        parameters: two values of each parameter, one per unit of a layer of two.
        log_weight: log of the unnormalised weight of x in arbitrary precision, from x and the parameters.
        support: the values of a discrete unit.
    """

    name: str
    make: Callable[..., Units]
    parameters: dict[str, tuple[float, float]]
    log_weight: Callable[..., Any]
    support: tuple[float, ...]

    def units(self, dtype: torch.dtype = torch.float64) -> Units:
        return self.make(**{name: torch.tensor(values, dtype=dtype) for name, values in self.parameters.items()})

    def truth(self, unit: int, linear: float, quadratic: float) -> tuple[Any, Any, Any]:
        """log Z, mean and variance under fields, in arbitrary precision."""
        own = {name: mpmath.mpf(values[unit]) for name, values in self.parameters.items()}
        logs = [self.log_weight(x, **own) + linear * x - quadratic * mpmath.mpf(x) ** 2 / 2 for x in self.support]
        weights = [mpmath.e**value for value in logs]
        total = mpmath.fsum(weights)
        mean = mpmath.fsum(w * x for w, x in zip(weights, self.support, strict=True)) / total
        variance = mpmath.fsum(w * (x - mean) ** 2 for w, x in zip(weights, self.support, strict=True)) / total
        return mpmath.log(total), mean, variance


CASES = [
    Case("bernoulli", lambda bias: Bernoulli(bias), {"bias": (-1.3, 0.8)}, lambda x, bias: bias * x, (0.0, 1.0)),
]

every_unit = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def grid(dtype: torch.dtype = torch.float64, limit: float = float("inf")) -> Fields:
    """Both units of a layer under every pair of fields up to a limit; (pairs, 2)."""
    pairs = [(b, a) for b in LINEAR for a in QUADRATIC if max(abs(b), abs(a)) <= limit]
    linear, quadratic = torch.tensor(pairs, dtype=dtype).T
    return Fields(linear[:, None].expand(-1, 2).contiguous(), quadratic[:, None].expand(-1, 2).contiguous())


def as_float(values: list[list[Any]]) -> Tensor:
    return torch.tensor([[float(value) for value in row] for row in values], dtype=torch.float64)


@every_unit
def test_derivatives_of_the_log_partition_are_mean_and_variance(case: Case) -> None:
    units, fields = case.units(), grid()
    linear = fields.linear.clone().requires_grad_()
    total = units.log_partition(Fields(linear, fields.quadratic)).sum()
    (first,) = torch.autograd.grad(total, linear, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), linear)
    mean, variance = units.moments(fields)
    # torch's softplus is linear from 20 on, which leaves exp(-20) of its derivatives behind.
    torch.testing.assert_close(first.detach(), mean, rtol=0, atol=3e-9)
    torch.testing.assert_close(second, variance, rtol=0, atol=3e-9)


@every_unit
def test_finite_differences_of_the_log_partition_are_mean_and_variance(case: Case) -> None:
    units, fields, step = case.units(), grid(limit=MODERATE), 1e-4
    up, down = (Fields(fields.linear + shift, fields.quadratic) for shift in (step, -step))
    mean, variance = units.moments(fields)
    slope = (units.log_partition(up) - units.log_partition(down)) / (2 * step)
    bend = (units.moments(up)[0] - units.moments(down)[0]) / (2 * step)
    torch.testing.assert_close(slope, mean, rtol=0, atol=2e-5)
    torch.testing.assert_close(bend, variance, rtol=0, atol=1e-8)


@every_unit
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 3e-9), (torch.float32, 3e-7)], ids=str)
def test_moments_against_arbitrary_precision(case: Case, dtype: torch.dtype, tolerance: float) -> None:
    # Exactly representable parameters and fields, so that both sides answer the same question.
    single = Case(
        case.name,
        case.make,
        {name: tuple(float(torch.tensor(v, dtype=dtype)) for v in pair) for name, pair in case.parameters.items()},
        case.log_weight,
        case.support,
    )
    fields = grid(dtype)
    units = single.units(dtype)
    with mpmath.workdps(60):
        answers = [
            [single.truth(unit, b, a) for unit in (0, 1)]
            for b, a in zip(fields.linear[:, 0].tolist(), fields.quadratic[:, 0].tolist(), strict=True)
        ]
        expected = [as_float([[unit[part] for unit in row] for row in answers]) for part in range(3)]
    mean, variance = units.moments(fields)
    got = [value.double() for value in (units.log_partition(fields), mean, variance)]
    for value in got:
        assert bool(torch.isfinite(value).all())
    torch.testing.assert_close(got[0], expected[0], rtol=tolerance, atol=tolerance)
    for value, wanted in zip(got[1:], expected[1:], strict=True):
        torch.testing.assert_close(value, wanted, rtol=0, atol=tolerance)


@every_unit
def test_extreme_fields_give_the_values_at_the_ends_of_the_support(case: Case) -> None:
    units = case.units(torch.float32)
    for sign, value in ((-1, min(case.support)), (1, max(case.support))):
        mean, variance = units.moments(Fields(torch.full((2,), sign * 1000.0)))
        assert mean.tolist() == [value, value]
        assert variance.tolist() == [0, 0]


@every_unit
def test_statistics_and_their_expectation_are_derivatives_in_the_parameters(case: Case) -> None:
    fields = grid(limit=MODERATE)
    named = {
        name: value[None].expand_as(fields.linear).clone().requires_grad_()
        for name, value in case.units().parameters.items()
    }
    units = case.units().with_parameters(named)
    slopes = torch.autograd.grad(units.log_partition(fields).sum(), list(named.values()))
    expected = case.units().expected_statistics(fields)
    assert expected.keys() == named.keys()
    for name, slope in zip(named, slopes, strict=True):
        torch.testing.assert_close(slope, expected[name], rtol=0, atol=3e-9)
    values = torch.tensor(case.support, dtype=torch.float64)[:, None].expand(-1, 2)
    of_values = {
        name: value[None].expand_as(values).clone().requires_grad_() for name, value in case.units().parameters.items()
    }
    weights = case.units().with_parameters(of_values).log_weight(values)
    for name, slope in zip(of_values, torch.autograd.grad(weights.sum(), list(of_values.values())), strict=True):
        torch.testing.assert_close(slope, case.units().statistics(values)[name])


@every_unit
def test_log_weight_is_the_density_that_log_partition_normalises(case: Case) -> None:
    fields = grid(limit=MODERATE)
    units = case.units()
    values = torch.tensor(case.support, dtype=torch.float64)[:, None, None]
    weighted = units.log_weight(values) + fields.linear * values - fields.quadratic * values**2 / 2
    torch.testing.assert_close(torch.logsumexp(weighted, 0), units.log_partition(fields), rtol=0, atol=3e-9)


@every_unit
def test_mode_is_the_heaviest_value(case: Case) -> None:
    fields = grid()
    units = case.units()
    values = torch.tensor(case.support, dtype=torch.float64)[:, None, None]
    heaviest = (units.log_weight(values) + fields.linear * values - fields.quadratic * values**2 / 2).amax(0)
    mode = units.mode(fields)
    assert set(mode.unique().tolist()) <= set(case.support)
    weight = units.log_weight(mode) + fields.linear * mode - fields.quadratic * mode**2 / 2
    torch.testing.assert_close(weight, heaviest)


@every_unit
@pytest.mark.parametrize("linear", [-1000.0, -2.0, 0.0, 1.5, 1000.0])
def test_samples_have_the_moments(case: Case, linear: float) -> None:
    count = 40_000
    units = case.units()
    fields = Fields(torch.full((count, 2), linear, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64))
    drawn = units.sample(fields, seeded(1))
    assert set(drawn.unique().tolist()) <= set(case.support)
    mean, variance = (value[0] for value in units.moments(fields))
    # Five standard errors.
    assert bool(((drawn.mean(0) - mean).abs() <= 5 * (variance / count).sqrt() + 1e-12).all())
    fourth = (torch.tensor(case.support)[:, None] - mean).abs().amax(0) ** 2
    error = ((drawn - mean) ** 2).mean(0) - variance
    assert bool((error.abs() <= 5 * (variance * fourth / count).sqrt() + 1e-12).all())


@every_unit
def test_samples_come_from_the_generator_given(case: Case) -> None:
    units, fields = case.units(), Fields(torch.zeros(50, 2, dtype=torch.float64))
    before = torch.random.get_rng_state()
    first, again, other = (units.sample(fields, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


@every_unit
def test_tilted_units_answer_as_under_the_field(case: Case) -> None:
    units, first = case.units(), grid(limit=MODERATE)
    second = Fields(torch.tensor([0.3, -1.1], dtype=torch.float64), torch.tensor(0.4, dtype=torch.float64))
    tilted = units.tilt(first)
    assert tilted.size == units.size == 2
    nothing = torch.zeros(2, dtype=torch.float64)
    # Absorbing a field may add a constant to the log-partition of one unit, never a dependence on further fields.
    gained = tilted.log_partition(second) - tilted.log_partition(Fields(nothing))
    wanted = units.log_partition(first + second) - units.log_partition(first)
    torch.testing.assert_close(gained, wanted, rtol=0, atol=3e-9)
    for got, wanted in zip(tilted.moments(second), units.moments(first + second), strict=True):
        torch.testing.assert_close(got, wanted)


@every_unit
def test_rows_take_images_of_a_batch(case: Case) -> None:
    units, index = case.units(), torch.tensor([2, 0])
    assert units.rows(index) is units
    tilted = units.tilt(Fields(torch.arange(6.0, dtype=torch.float64).view(3, 2)))
    for name, value in tilted.rows(index).parameters.items():
        assert torch.equal(value, tilted.parameters[name][index])


@every_unit
def test_parameters_round_trip(case: Case) -> None:
    units = case.units()
    again = units.with_parameters(units.parameters)
    assert type(again) is type(units)
    assert again.parameters.keys() == case.parameters.keys()
    for name, value in again.parameters.items():
        assert value.tolist() == list(case.parameters[name])


def test_fields_add() -> None:
    total = Fields(torch.tensor([1.0, 2.0]), torch.tensor(0.5)) + Fields(torch.tensor([0.5, -2.0]))
    assert total.linear.tolist() == [1.5, 0.0]
    assert float(total.quadratic) == 0.5


@pytest.mark.parametrize("log_odds", [-700.0, -30.0, 0.0, 19.0, 21.0, 25.0, 39.0, 41.0, 1000.0])
def test_the_log_partition_keeps_every_digit(log_odds: float) -> None:
    exact = mpmath.log1p(mpmath.exp(mpmath.mpf(log_odds)))
    found = float(Bernoulli(torch.tensor([log_odds], dtype=torch.float64)).log_partition(Fields(torch.zeros(1)))[0])
    assert abs(found - exact) <= 1e-15 * abs(exact)
