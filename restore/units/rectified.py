"""Rectified Gaussian units: normal distributions cut at 0, without the negative values.

As hidden units they represent the strength of a feature, which bits cannot (Tubiana & Monasson, PRL 118, 138301, 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

import torch
from torch import Tensor

from restore.fields import Fields
from restore.units.quadratic import QuadraticUnits
from restore.units.truncated_gaussian import PRECISIONS, Piece, Quadrature, Split, drawn, fall, law_of, rule_for


def _split(linear: Tensor, quadratic: Tensor) -> Split:
    """The weight exp(linear x - quadratic x²/2) for x >= 0, split at its peak; NaN without curvature."""
    curvature = torch.where(quadratic > 0, quadratic, torch.nan)
    peak = (linear / curvature).clamp_min(0)
    nothing = torch.zeros_like(peak)
    bend = 2 * PRECISIONS[linear.dtype].fall * curvature
    up = Piece(peak, nothing, *fall((-linear).clamp_min(0), bend, torch.full_like(peak, math.inf)))
    down = Piece(peak, nothing, *fall(nothing, bend, peak))
    return Split(up, down, curvature, peak * (linear - curvature * peak / 2))


@dataclass(frozen=True)
class Rectified(QuadraticUnits):
    """Units with a normal distribution cut at 0: weight exp(bias x - quadratic x² / 2) for x >= 0.

    If fields leave no positive curvature, the weight has no integral and all answers are NaN.

    Attributes:
        bias: shape (n,) or (batch, n).
        quadratic: positive, same shape.
        made: the rule of other units, reused if it has the right precision.
        rule: quadrature in the precision of the parameters, as of `TruncatedGaussian`.

    >>> units = Rectified(torch.zeros(3), torch.ones(3))
    >>> seen = Fields(torch.tensor([-2.0, 0.0, 2.0]))
    >>> units.mode(seen).tolist(), [round(mean, 2) for mean in units.moments(seen)[0].tolist()]
    ([0.0, 0.0, 2.0], [0.37, 0.8, 2.06])
    """

    made: InitVar[Quadrature | None] = None
    rule: Quadrature = field(init=False, repr=False)

    def __post_init__(self, made: Quadrature | None) -> None:
        object.__setattr__(self, "rule", rule_for(self.bias, made))

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, math.inf

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Rectified:
        return Rectified(parameters["bias"], parameters["quadratic"], self.rule)

    def law(self, fields: Fields) -> tuple[Tensor, Tensor, Tensor]:
        log_partition, mean, variance = law_of(self.rule, _split, *self.under(fields))
        return fields.with_presence(log_partition), mean, variance

    def mode(self, fields: Fields) -> Tensor:
        curvature = self.quadratic + fields.quadratic
        return torch.relu(self.bias + fields.linear) / torch.where(curvature > 0, curvature, torch.nan)

    def sample(self, fields: Fields, generator: torch.Generator | None = None) -> Tensor:
        return drawn(self.rule, _split(*self.under(fields)), generator)

    def log_weight(self, values: Tensor) -> Tensor:
        return torch.where(values >= 0, values * (self.bias - self.quadratic * values / 2), -torch.inf)
