"""Units on a bounded support, with and without an atom at 0, over all fields up to ±10,000: see unit_cases.py."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
import torch
from machines import seeded
from torch import Tensor
from unit_cases import DIGITS, Case, Law, fields_of

from restore.fields import Fields
from restore.units import Spiked, TruncatedGaussian, truncated_gaussian

SIZES = (1e-3, 0.1, 1.0, 3.0, 10.0, 37.5, 100.0, 1000.0, 1e4)
VALUES = (0.0, -0.0, *SIZES, *(-size for size in SIZES))
GRID = list(product(VALUES, VALUES))
SUPPORTS = [(0.0, 1.0), (-1.0, 1.0)]

# Parameters of zero, so that the fields are U, V and K themselves. Both units of a layer are the same.
NOTHING = (0.0, 0.0)


def truncated(low: float, high: float) -> Case:
    return Case(
        f"truncated[{low:g},{high:g}]",
        lambda bias, quadratic: TruncatedGaussian(bias, quadratic, low, high),
        {"bias": NOTHING, "quadratic": NOTHING},
        slab=(low, high),
    )


def spiked(low: float, high: float) -> Case:
    return Case(
        f"spiked[{low:g},{high:g}]",
        lambda presence, bias, quadratic: Spiked(presence, TruncatedGaussian(bias, quadratic, low, high)),
        {"presence": NOTHING, "bias": NOTHING, "quadratic": NOTHING},
        atoms=(0,),
        slab=(low, high),
    )


CASES = {case.name: case for support in SUPPORTS for case in (truncated(*support), spiked(*support))}


@cache
def truths(name: str, presence: float) -> list[Law]:
    with mpmath.workdps(DIGITS):
        return [CASES[name].truth(0, (*at, presence), torch.float32) for at in rounded()]


def rounded() -> list[tuple[float, float]]:
    """The grid in float32, so that both precisions are asked the same."""
    return torch.tensor(GRID).double().tolist()


def answers(units: TruncatedGaussian | Spiked, fields: Fields) -> list[Tensor]:
    return [value[:, 0].double() for value in (units.log_partition(fields), *units.moments(fields))]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("presence", [0.0, *(pytest.param(each, marks=pytest.mark.thorough) for each in (-7.0, 5.0))])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_every_digit_that_is_promised(name: str, presence: float, dtype: torch.dtype) -> None:
    fields = fields_of([(*at, presence) for at in rounded()], dtype)
    log_z, mean, variance = answers(CASES[name].units(dtype), fields)
    laws = truths(name, presence)
    wanted = [torch.tensor([float(law[part]) for law in laws], dtype=torch.float64) for part in range(3)]
    for value in (log_z, mean, variance):
        assert not bool(value.isnan().any())
    double = dtype is torch.float64
    tolerance, tiny = (1e-6, 1e-300) if double else (1e-3, 1e-35)
    # An absolute error of log Z is a relative one of Z; in float32 log Z itself has only so many digits.
    torch.testing.assert_close(log_z, wanted[0], rtol=1e-12 if double else 1e-3, atol=tolerance)
    # On [-1, 1] a mean between the two halves is a difference, 0 by symmetry where U = 0: it is known to so many digits
    # of its standard deviation.
    spread = wanted[2].sqrt() if CASES[name].slab[0] < 0 else wanted[2].new_tensor(tiny)
    assert bool(((mean - wanted[1]).abs() <= tolerance * torch.maximum(wanted[1].abs(), spread)).all())
    # A variance has no cancellation to hide behind, only numbers below the smallest of the type.
    torch.testing.assert_close(variance, wanted[2], rtol=tolerance, atol=tiny)


@cache
def dense(low: float, high: float) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """A dense grid of moderate fields, with log Z, mean and variance by 16 panels."""
    linear, quadratic = torch.cartesian_prod(torch.linspace(-90, 90, 181), torch.linspace(-140, 60, 201)).T.contiguous()
    nodes, weights = (torch.from_numpy(table)[:, None] for table in np.polynomial.legendre.leggauss(16))
    edges = torch.linspace(low, high, 17, dtype=torch.float64)
    x = torch.cat([(a + b) / 2 + nodes * (b - a) / 2 for a, b in pairwise(edges)])
    exponent = x * (linear.double() - quadratic.double() * x / 2)
    top = exponent.amax(0)
    density = (exponent - top).exp_() * weights.repeat(16, 1) * (high - low) / 32
    mass = density.sum(0)
    mean = (density * x).sum(0) / mass
    variance = (density * (x - mean) ** 2).sum(0) / mass
    return (linear, quadratic), (top + mass.log(), mean, variance)


@pytest.mark.parametrize("support", SUPPORTS, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-3)], ids=str)
def test_the_hardest_fields(support: tuple[float, float], dtype: torch.dtype, tolerance: float) -> None:
    """Valleys that are cut near their turning point err most."""
    (linear, quadratic), wanted = dense(*support)
    nothing = Fields(torch.zeros((), dtype=dtype))
    result = TruncatedGaussian(linear.to(dtype), quadratic.to(dtype), *support).law(nothing)
    for value, truth, floor in zip(result, wanted, (1.0, 1e-2, 0.0), strict=True):
        error = (value.double() - truth).abs() / truth.abs().clamp_min(floor)
        assert float(error.max()) <= tolerance


def test_many_units_are_what_a_few_are() -> None:
    """Large layers are integrated block by block."""
    linear, quadratic = 30 * torch.randn(2, 3, 9000, generator=seeded(1)).double()
    together = TruncatedGaussian(linear, quadratic).law(Fields(torch.zeros(()).double()))
    for row in range(3):
        alone = TruncatedGaussian(linear[row], quadratic[row]).law(Fields(torch.zeros(()).double()))
        for value, other in zip(together, alone, strict=True):
            torch.testing.assert_close(value[row], other, rtol=1e-12, atol=0)


def test_gradients_pass_where_inference_mode_came_first() -> None:
    """What is kept between calls may have been made in inference mode, whose tensors no gradient can pass."""
    truncated_gaussian._kept.cache_clear()
    linear = torch.tensor([0.3, -2.0], requires_grad=True)
    with torch.inference_mode():
        TruncatedGaussian(torch.zeros(2), torch.ones(2))
    log_z, mean, _ = TruncatedGaussian(torch.zeros(2), torch.ones(2)).law(Fields(linear))
    log_z.sum().backward()
    torch.testing.assert_close(linear.grad, mean.detach())
