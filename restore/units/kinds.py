"""Unit types by the names that recipes and weights files have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from restore.units.bernoulli import Bernoulli
from restore.units.contract import Units
from restore.units.gaussian import Gaussian
from restore.units.spiked import Spiked
from restore.units.spin import Spin
from restore.units.truncated_gaussian import TruncatedGaussian

# From parameters by name to a layer. Real values on a bounded support are grey levels, from 0 to 1.
KINDS: Mapping[str, Callable[[Mapping[str, Tensor]], Units]] = {
    "bernoulli": lambda named: Bernoulli(named["bias"]),
    "spin": lambda named: Spin(named["bias"]),
    "gaussian": lambda named: Gaussian(named["bias"], named["quadratic"]),
    "gauss-bernoulli": lambda named: Spiked(named["presence"], Gaussian(named["bias"], named["quadratic"])),
    "truncated-gaussian": lambda named: TruncatedGaussian(named["bias"], named["quadratic"]),
    "truncated-gauss-bernoulli": lambda named: Spiked(
        named["presence"], TruncatedGaussian(named["bias"], named["quadratic"])
    ),
}


def blank(kind: str, size: int, like: Tensor) -> Units:
    """A layer of a kind that prefers no value: all parameters 0, but 1 for the curvature of what has no bounds.

    Args:
        kind: a key of `KINDS`.
        size: number of units.
        like: has the type and device of the parameters.
    """
    bounded = kind not in ("gaussian", "gauss-bernoulli")
    # A tensor each: learners change parameters in place.
    curvature = like.new_zeros(size) if bounded else like.new_ones(size)
    return KINDS[kind]({"bias": like.new_zeros(size), "quadratic": curvature, "presence": like.new_zeros(size)})
