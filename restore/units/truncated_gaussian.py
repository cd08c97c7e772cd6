"""Real-valued units on a bounded support with weight exp(U x - V x² / 2), V of either sign (TAP machine, appendix C.1).

Everything follows from three integrals over the support. The exponent is a parabola, so the support splits at its
turning point into two pieces. On each the weight falls from one end: outwards from the peak if V > 0, inwards from the
ends of the support if V < 0. Each piece is cut where the weight becomes negligible, and integrated with Gauss-Legendre
nodes. This avoids erf, erfi and series, whose differences cancel at large fields, and one formula serves both signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.tracing import tracing
from restore.units.quadratic import QuadraticUnits


class Precision(NamedTuple):
    """Precision of a quadrature: number of nodes, and the fall of the exponent at which a piece is cut."""

    nodes: int
    fall: float


# Relative errors: variances 1e-7 and 3e-4, the rest far less, truncation included. The hardest cases are valleys about
# as deep as the fall. A larger fall needs more nodes: 20 nodes for 34 and 11 for 17.5 miss 1e-6 and 1e-3.
PRECISIONS = {torch.float64: Precision(22, 34.0), torch.float32: Precision(12, 17.0)}

# Units that are integrated together on a CPU; their nodes fill less than 1 MiB each way.
INTEGRATED = 20_000

# Bisections of a sample, after which two Newton steps reach rounding.
BISECTIONS = 12


class Piece(NamedTuple):
    """A part of the support on which the weight falls from `end` as exp(-slope t - V t²/2), t being the distance.

    `offset` is the log of the weight at the end, relative to the largest of all; `length` reaches to where the weight
    is negligible, and is zero for a piece outside the support.
    """

    end: Tensor
    offset: Tensor
    slope: Tensor
    length: Tensor


class Split(NamedTuple):
    """The weight of every unit as two pieces, falling towards higher and towards lower values; log of the largest."""

    up: Piece
    down: Piece
    curvature: Tensor
    largest: Tensor


class Quadrature(NamedTuple):
    """Quadrature on [0, 1]: -t and -t² at the nodes, (nodes, 2); weights times 1, t and t², (3, nodes)."""

    powers: Tensor
    moments: Tensor


def _listed(precision: Precision) -> tuple[list[list[float]], list[list[float]]]:
    nodes, weights = np.polynomial.legendre.leggauss(precision.nodes)
    nodes, weights = (nodes + 1) / 2, weights / 2
    powers = -np.stack([nodes, nodes**2], 1)
    moments = np.stack([weights, weights * nodes, weights * nodes**2])
    return powers.tolist(), moments.tolist()


LISTED = {dtype: _listed(precision) for dtype, precision in PRECISIONS.items()}


def rule_for(like: Tensor, made: Quadrature | None = None) -> Quadrature:
    """The quadrature in a tensor's type and on its device; `made` if that suits."""
    if made is not None and (made.powers.dtype, made.powers.device) == (like.dtype, like.device):
        return made
    # No tensor of a traced graph may outlive it.
    return (_made if tracing() else _kept)(like.dtype, like.device)


def _made(dtype: torch.dtype, device: torch.device) -> Quadrature:
    return Quadrature(*(torch.tensor(values, dtype=dtype, device=device) for values in LISTED[dtype]))


@cache
def _kept(dtype: torch.dtype, device: torch.device) -> Quadrature:
    # Outside inference mode, whose tensors no gradient can pass.
    with torch.inference_mode(False):
        return _made(dtype, device)


def _split(linear: Tensor, quadratic: Tensor, low: float, high: float) -> Split:
    """Split the weight exp(linear x - quadratic x²/2) on [low, high] where it turns; tensors of one shape."""
    # Minus zero would turn at the wrong infinity.
    quadratic = quadratic + 0.0
    # 1 at a peak, 0 in a valley: on a CPU, multiplying by it takes a tenth of the time of `torch.where`.
    peaked = (quadratic.sign() + 1).clamp_max(1)
    valley = 1 - peaked
    # Without curvature the weight turns at infinity, on the side of its slope; a constant weight turns anywhere.
    turn = (linear / quadratic).nan_to_num(low).clamp(low, high)
    height = (high - low) * (linear - quadratic * ((low + high) / 2)) * valley
    bend = 2 * PRECISIONS[linear.dtype].fall * quadratic
    above = torch.lerp(turn - low, high - turn, peaked)
    up = Piece(
        turn * peaked + low * valley,
        (-height).clamp_max(0),
        *fall((quadratic * low - linear).clamp_min(0), bend, above),
    )
    down = Piece(
        turn * peaked + high * valley,
        height.clamp_max(0),
        *fall((linear - quadratic * high).clamp_min(0), bend, (high - low) - above),
    )
    heights = (end * (linear - quadratic * end / 2) for end in (up.end, down.end))
    return Split(up, down, quadratic, torch.maximum(*heights))


def fall(slope: Tensor, bend: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """The slope, and the t at which slope t + V t²/2 is the fall or the room ends; `bend` is 2 V times the fall."""
    root = torch.addcmul(bend, slope, slope).clamp_min(0).sqrt()
    # This sum does not cancel.
    return slope, torch.minimum(room, 2 * PRECISIONS[slope.dtype].fall / (slope + root))


def _weights(rule: Quadrature, curvature: Tensor, slope: Tensor, length: Tensor) -> Tensor:
    """The weight at the nodes of [0, length], relative to the end; (nodes, elements of length)."""
    falls = torch.stack([slope * length, curvature * length * length / 2])
    # In place: a second buffer of this size costs more than the exponentials.
    return (rule.powers @ falls.flatten(1)).exp_()


def _moments(rule: Quadrature, piece: Piece, curvature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mass of a piece relative to the largest weight; mean and variance of the distance from its end."""
    weights = _weights(rule, curvature, piece.slope, piece.length)
    mass, first, second = (rule.moments @ weights).view(3, *curvature.shape).unbind(0)
    distance = first / mass
    variance = torch.addcmul(second / mass, distance, distance, value=-1) * piece.length * piece.length
    return mass * piece.length * piece.offset.exp(), distance * piece.length, variance


def _law(rule: Quadrature, split: Split) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partition, mean and variance of a weight."""
    up, down, curvature, largest = split
    mass, distance, variance = _moments(rule, up, curvature)
    other_mass, other_distance, other_variance = _moments(rule, down, curvature)
    total = mass + other_mass
    share = other_mass / total
    centre = up.end + distance
    apart = (down.end - other_distance) - centre
    # Law of total variance over the two pieces.
    spread = torch.lerp(variance, other_variance, share) + share * (mass / total) * apart * apart
    return largest + total.log(), torch.addcmul(centre, share, apart), spread


def law_of(
    rule: Quadrature, split: Callable[[Tensor, Tensor], Split], linear: Tensor, quadratic: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partition, mean and variance, in blocks of units that fit into a processor's caches."""
    if tracing() or linear.is_cuda or linear.numel() <= INTEGRATED:
        return _law(rule, split(linear, quadratic))
    blocks = zip(linear.reshape(-1).split(INTEGRATED), quadratic.reshape(-1).split(INTEGRATED), strict=True)
    parts = zip(*(_law(rule, split(*block)) for block in blocks), strict=True)
    log_partition, mean, variance = (torch.cat(part).view(linear.shape) for part in parts)
    return log_partition, mean, variance


def _inverse(rule: Quadrature, piece: Piece, curvature: Tensor, part: Tensor) -> Tensor:
    """Distance from the end of a piece within which this part of its mass lies."""

    def mass(distance: Tensor) -> Tensor:
        return distance * (rule.moments[0] @ _weights(rule, curvature, piece.slope, distance)).view_as(distance)

    wanted = part * mass(piece.length)
    near = torch.zeros_like(part)
    far = piece.length
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        below = mass(middle) < wanted
        near, far = torch.where(below, middle, near), torch.where(below, far, middle)
    distance = (near + far) / 2
    for _ in range(2):
        density = torch.exp(-distance * (piece.slope + curvature * distance / 2))
        distance = torch.minimum((distance + (wanted - mass(distance)) / density).clamp_min(0), piece.length)
    return distance


def drawn(rule: Quadrature, split: Split, generator: torch.Generator | None) -> Tensor:
    """A value of each unit, by inverting the distribution function."""
    up, down, curvature, _ = split
    masses = [_moments(rule, piece, curvature)[0] for piece in (up, down)]
    share = masses[0] / (masses[0] + masses[1])
    uniform = torch.rand(share.shape, dtype=share.dtype, device=share.device, generator=generator)
    rises = uniform < share
    part = torch.where(rises, uniform / share, (uniform - share) / (1 - share))
    piece = Piece(*(torch.where(rises, first, second) for first, second in zip(up, down, strict=True)))
    distance = _inverse(rule, piece, curvature, part.nan_to_num(0).clamp(0, 1))
    return torch.where(rises, piece.end + distance, piece.end - distance)


@dataclass(frozen=True)
class TruncatedGaussian(QuadraticUnits):
    """Units with a normal distribution cut to an interval: weight exp(bias x - quadratic x² / 2) for low <= x <= high.

    The natural parametrisation of appendix C.1: bias is U and quadratic V.

    Attributes:
        bias: shape (n,) or (batch, n).
        quadratic: same shape, of either sign; where it is negative, both ends are likelier than what lies between.
        low, high: the support, low < high, both finite.
        made: the rule of other units, reused if it has the right precision.
        rule: quadrature in the precision of the parameters. The units pass it on to their copies, so that an iteration
            traced into a graph finds it ready.

    Raises:
        UsageError: if the support is empty or not bounded.

    >>> units = TruncatedGaussian(torch.zeros(2), torch.zeros(2))  # all values from 0 to 1 equally likely
    >>> mean, _ = units.moments(Fields(torch.tensor([0.0, -10.0])))
    >>> [round(value, 3) for value in mean.tolist()]
    [0.5, 0.1]
    """

    low: float = 0.0
    high: float = 1.0
    made: InitVar[Quadrature | None] = None
    rule: Quadrature = field(init=False, repr=False)

    def __post_init__(self, made: Quadrature | None) -> None:
        object.__setattr__(self, "rule", rule_for(self.bias, made))
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"a support needs finite ends, low < high, not [{self.low}, {self.high}]")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> TruncatedGaussian:
        return TruncatedGaussian(parameters["bias"], parameters["quadratic"], self.low, self.high, self.rule)

    def law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        log_partition, mean, variance = law_of(self.rule, self._split, *self.under(fields))
        return fields.with_presence(log_partition), mean, variance

    def mode(self, fields: Fields) -> Tensor:
        linear, quadratic = self.under(fields)
        # Without curvature the weight is largest at an end.
        end = torch.where(linear > quadratic * ((self.low + self.high) / 2), self.high, self.low)
        curved = quadratic > 0
        return torch.where(curved, (linear / torch.where(curved, quadratic, 1)).clamp(self.low, self.high), end)

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        return drawn(self.rule, self._split(*self.under(fields)), generator)

    def _split(self, linear: Tensor, quadratic: Tensor) -> Split:
        return _split(linear, quadratic, self.low, self.high)

    def log_weight(self, values: Tensor) -> Tensor:
        inside = (values >= self.low) & (values <= self.high)
        return torch.where(inside, values * (self.bias - self.quadratic * values / 2), -torch.inf)
