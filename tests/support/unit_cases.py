"""The unit types as measures, and the truth about them in arbitrary precision; it shares no code with the package.

Every type is weighed by exp(U x - V x²/2 + K [x ≠ 0]) over some single values, its atoms, and an interval, its slab.
Both have closed forms: sums, and (for the slab) error functions, whose cancellation hundreds of digits make good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np
import torch
from torch import Tensor

from restore.fields import Fields
from restore.units import Bernoulli, Gaussian, Rectified, Spiked, Spin, TruncatedGaussian, Units

DIGITS = 150

# Below this a field changes nothing in the digits that are compared.
FLAT = mpmath.mpf("1e-20")

INFINITE = (-mpmath.inf, mpmath.inf)


class Law(NamedTuple):
    """log Z, mean and variance of one unit, as mpmath numbers."""

    log_partition: mpmath.mpf
    mean: mpmath.mpf
    variance: mpmath.mpf


class Natural(NamedTuple):
    """U, V and K: the parameters of a unit and the fields on it, added up."""

    linear: mpmath.mpf
    quadratic: mpmath.mpf
    presence: mpmath.mpf


def slab_law(linear: mpmath.mpf, quadratic: mpmath.mpf, low: mpmath.mpf, high: mpmath.mpf) -> Law:
    """The law of exp(U x - V x²/2) on [low, high].

    Integrating U - V x and (U - V x) x by parts gives mean and second moment from the integral and the two ends.
    """
    if low == -mpmath.inf:
        mean = linear / quadratic
        return Law(linear * mean / 2 + mpmath.log(2 * mpmath.pi / quadratic) / 2, mean, 1 / quadratic)
    if high == mpmath.inf:
        # From 0 on: parts integrated as below, of which only the lower end is left.
        root = mpmath.sqrt(2 * quadratic)
        scaled = mpmath.sqrt(mpmath.pi) / root * mpmath.exp(linear**2 / (2 * quadratic)) * mpmath.erfc(-linear / root)
        mean = (linear + 1 / scaled) / quadratic
        return Law(mpmath.log(scaled), mean, (linear * mean + 1) / quadratic - mean**2)

    def exponent(x: mpmath.mpf) -> mpmath.mpf:
        return x * (linear - quadratic * x / 2)

    linear, quadratic = (value if abs(value) >= FLAT else mpmath.mpf(0) for value in (linear, quadratic))
    top = max(exponent(low), exponent(high))
    bottom_weight, top_weight = (mpmath.exp(exponent(end) - top) for end in (low, high))
    ends = [high**power * top_weight - low**power * bottom_weight for power in (0, 1, 2)]
    if quadratic != 0:
        mass = mpmath.exp(linear**2 / (2 * quadratic) - top) * _bell(linear, quadratic, low, high)
        mean = (linear - ends[0] / mass) / quadratic
        second = (linear * mean + 1 - ends[1] / mass) / quadratic
    elif linear != 0:
        mass = ends[0] / linear
        mean = (ends[1] / mass - 1) / linear
        second = (ends[2] / mass - 2 * mean) / linear
    else:
        mass, mean, second = high - low, (low + high) / 2, (low * low + low * high + high * high) / 3
    return Law(top + mpmath.log(mass), mean, second - mean**2)


def _bell(linear: mpmath.mpf, quadratic: mpmath.mpf, low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
    """The integral of exp(-V (x - U/V)²/2) over [low, high], with V of either sign."""
    root = mpmath.sqrt(2 * abs(quadratic))
    start, stop = ((quadratic * end - linear) / root for end in (low, high))
    if quadratic < 0:
        parts = mpmath.erfi(start) - mpmath.erfi(stop)
    elif start > 0:
        parts = mpmath.erfc(start) - mpmath.erfc(stop)
    else:
        parts = mpmath.erfc(-stop) - mpmath.erfc(-start)
    return mpmath.sqrt(mpmath.pi) / root * parts


def mixture(parts: list[Law]) -> Law:
    """The law of what is the first with a probability in proportion to its Z, or the second, ..."""
    top = max(part.log_partition for part in parts)
    weights = [mpmath.exp(part.log_partition - top) for part in parts]
    total = mpmath.fsum(weights)
    mean = mpmath.fsum(weight * part.mean for weight, part in zip(weights, parts, strict=True)) / total
    spread = [part.variance + (part.mean - mean) ** 2 for part in parts]
    variance = mpmath.fsum(weight * value for weight, value in zip(weights, spread, strict=True)) / total
    return Law(top + mpmath.log(total), mean, variance)


@dataclass(frozen=True)
class Case:
    """A unit type.

    Attributes:
        make: from a tensor of each parameter, by name, to units.
        parameters: two values of each parameter, one per unit of a layer of two.
        atoms: the single values that have a probability of their own.
        slab: the interval of all others, if there is one.
    """

    name: str
    make: Callable[..., Units]
    parameters: Mapping[str, tuple[float, float]]
    atoms: tuple[float, ...] = ()
    slab: tuple[float, float] | None = None

    @property
    def bounded(self) -> bool:
        return self.slab is None or np.inf not in self.slab

    @property
    def support(self) -> tuple[float, float]:
        values = [*self.atoms, *(self.slab or ())]
        return float(min(values)), float(max(values))

    def units(self, dtype: torch.dtype = torch.float64) -> Units:
        return self.make(**{name: torch.tensor(values, dtype=dtype) for name, values in self.parameters.items()})

    def natural(self, unit: int, fields: tuple[float, float, float], dtype: torch.dtype = torch.float64) -> Natural:
        """What a unit with parameters of some precision is under fields (linear, quadratic, presence)."""
        own = {
            name: mpmath.mpf(float(torch.tensor(values[unit], dtype=dtype))) for name, values in self.parameters.items()
        }
        names = ("bias", "quadratic", "presence")
        return Natural(*(own.get(name, mpmath.mpf(0)) + value for name, value in zip(names, fields, strict=True)))

    def components(self, natural: Natural) -> list[Law]:
        """Every atom, and the slab behind them."""
        linear, quadratic, presence = natural
        parts = [
            Law(x * (linear - quadratic * x / 2) + presence * (x != 0), mpmath.mpf(x), mpmath.mpf(0))
            for x in map(mpmath.mpf, self.atoms)
        ]
        if self.slab is None:
            return parts
        slab = slab_law(linear, quadratic, *map(mpmath.mpf, self.slab))
        return [*parts, slab._replace(log_partition=slab.log_partition + presence)]

    def truth(self, unit: int, fields: tuple[float, float, float], dtype: torch.dtype = torch.float64) -> Law:
        return mixture(self.components(self.natural(unit, fields, dtype)))

    def absent(self, natural: Natural) -> mpmath.mpf:
        """The probability of the atom at 0; 0 where there is none."""
        parts = self.components(natural)
        gone = [part.log_partition for part in parts if part.mean == 0 == part.variance]
        return mpmath.exp(gone[0] - mixture(parts).log_partition) if gone else mpmath.mpf(0)

    def mesh(self, natural: Natural, cells: int = 2000) -> tuple[np.ndarray, np.ndarray]:
        """Points over the slab, and the weight between neighbours relative to Z, by Gauss-Legendre in float64."""
        linear, quadratic, presence = map(float, natural)
        low, high = self.slab
        if not self.bounded:
            ends = ((linear + side * 12 * quadratic**0.5) / quadratic for side in (-1, 1))
            low, high = (max(float(low), end) for end in ends)
        edges = np.linspace(float(low), float(high), cells + 1)
        nodes, weights = np.polynomial.legendre.leggauss(4)
        width = np.diff(edges)[:, None]
        x = edges[:-1, None] + width * (nodes + 1) / 2
        log_z = float(mixture(self.components(natural)).log_partition)
        density = np.exp(x * (linear - quadratic * x / 2) + presence - log_z)
        return edges, (density * weights * width / 2).sum(1)


def symmetric(bias: Tensor, quadratic: Tensor) -> TruncatedGaussian:
    return TruncatedGaussian(bias, quadratic, -1.0, 1.0)


def spiked(slab: Callable[..., Any]) -> Callable[[Tensor, Tensor, Tensor], Spiked]:
    return lambda presence, bias, quadratic: Spiked(presence, slab(bias, quadratic))


BELL = {"bias": (-0.7, 1.4), "quadratic": (0.6, 2.5)}
SPIKED = {
    "spiked-truncated[0,1]": {"presence": (0.8, -1.1), "bias": (1.2, -0.3), "quadratic": (4.0, -2.0)},
    "spiked-truncated[-1,1]": {"presence": (-0.4, 1.3), "bias": (0.9, -0.2), "quadratic": (1.5, -1.0)},
    "spiked-gaussian": {"presence": (0.5, -0.9), "bias": (0.6, -1.1), "quadratic": (1.4, 0.7)},
}
SLABS = (TruncatedGaussian, (0, 1)), (symmetric, (-1, 1)), (Gaussian, INFINITE)
CASES = [
    Case("bernoulli", Bernoulli, {"bias": (-1.3, 0.8)}, atoms=(0, 1)),
    Case("spin", Spin, {"bias": (-0.7, 0.4)}, atoms=(-1, 1)),
    Case("gaussian", Gaussian, BELL, slab=INFINITE),
    Case("rectified", Rectified, BELL, slab=(0, np.inf)),
    Case("truncated[0,1]", TruncatedGaussian, {"bias": (-0.9, 2.0), "quadratic": (3.1, -1.7)}, slab=(0, 1)),
    Case("truncated[-1,1]", symmetric, {"bias": (0.4, -1.5), "quadratic": (2.2, -0.8)}, slab=(-1, 1)),
    *(
        Case(name, spiked(slab), values, atoms=(0,), slab=support)
        for (name, values), (slab, support) in zip(SPIKED.items(), SLABS, strict=True)
    ),
]


def fields_of(points: list[tuple[float, float, float]], dtype: torch.dtype = torch.float64) -> Fields:
    """Both units of a layer under every one of some fields (linear, quadratic, presence); (points, 2)."""
    columns = torch.tensor(points, dtype=dtype).T[:, :, None].expand(-1, -1, 2)
    return Fields(*(column.contiguous() for column in columns))
