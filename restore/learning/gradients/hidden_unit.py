"""Search for the hidden unit that Frank-Wolfe adds next, its size, and the gain of adding or removing one (eq. 9).

All of this needs only samples of the model: fixed ones while the unit is sought, and later ones to judge it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.units import log_one_plus_exp

# L-BFGS for one unit ends after this many iterations, or at a smaller gradient; more does not change the gain.
OPTIONS = {"maxiter": 30, "gtol": 1e-4}

# Standard deviation of the weights that the search for a unit starts from.
START_SCALE = 0.1

# Multiples of the penalty to search with, in order, until one leads to a unit. A higher penalty finds a smaller unit,
# which a model that is nearly finished, or has few samples, can still take.
STIFFNESS = (1.0, 3.0, 10.0, 30.0, 100.0)

# A smaller gain, in nats, is a rounding error: a search that finds nothing ends near zero.
ROUNDING = 1e-9

# The factors by which a unit may be scaled (see `fitting_scale`).
SCALES = tuple(2 ** (-step / 2) for step in range(13))


class Unit(NamedTuple):
    """A hidden unit: weights (D,) and a bias (zero-dimensional), the weight of a pixel that is always 1."""

    weights: Tensor
    bias: Tensor

    def inputs(self, visible: Tensor) -> Tensor:
        return visible @ self.weights + self.bias

    def scaled(self, scale: float) -> Unit:
        return Unit(scale * self.weights, scale * self.bias)

    @property
    def square(self) -> float:
        """|w|² including the bias; a unit's penalty is λ / 2 times this."""
        return float(self.weights.double().square().sum() + self.bias.double().square())


class Change(NamedTuple):
    """The effects of K changes of the model by factors exp(φ(v)), each by itself; float64, shape (K,).

    The `gain` in the mean log-likelihood of the images has a standard error, from the number of samples. The `overlap`
    is the effective share, in (0, 1], of the samples that are still typical; if it is small, the gain cannot be
    trusted.
    """

    gain: Tensor
    error: Tensor
    overlap: Tensor


def change(images: Tensor, samples: Tensor) -> Change:
    """The mean of φ over images (K,) minus the log of the mean of exp φ over samples of the model (S, K); float64.

    Too high if φ was sought with the same samples, on which it is small.
    """
    count = len(samples)
    overlap = 1 / (count * torch.softmax(samples, 0).square().sum(0))
    gain = images - (torch.logsumexp(samples, 0) - math.log(count))
    return Change(gain, ((1 / overlap - 1).clamp(min=0) / count).sqrt(), overlap)


def most_gaining(outcome: Change, net: Tensor, overlap: float) -> int | None:
    """The change with the highest net gain (K,) after penalty, of those with a gain and enough overlap."""
    eligible = (outcome.overlap >= overlap) & (net > ROUNDING)
    return int(torch.where(eligible, net, -torch.inf).argmax()) if bool(eligible.any()) else None


def factor(inputs: Tensor, share: Tensor, bias: Tensor) -> Tensor:
    """φ = softplus(x) - s (x - c): a unit, minus what the visible bias compensates.

    A unit also shifts the means of the visible units it is joined to. If it is on for a share s (K,) of the images, the
    visible bias is lowered by s w, so that to first order those means stay (the same gauge as in `centring`). The
    inputs x = wᵀv + c of K units are (N, K), their biases c (K,).
    """
    return log_one_plus_exp(inputs.double()) - share * (inputs.double() - bias)


def objective(unit: Unit, images: Tensor, samples: Tensor, penalty: float) -> tuple[float, Unit]:
    """λ/2 |w|² minus the unit's gain (see `factor` and `change`), and its gradient; images (N, D), samples (S, D).

    For a small unit this is the paper's eq. 9, minus what the visible bias compensates. It is never smaller than eq. 9
    (Jensen's inequality): where this is negative, so is eq. 9. But at the minimum of eq. 9 a unit multiplies the
    probability of some samples by many powers of ten, after which the samples say nothing about the model. Scaled down
    until they do, such a unit gains far less than the one sought here.
    """
    at_images, at_samples = unit.inputs(images), unit.inputs(samples)
    on_images, on_samples = torch.sigmoid(at_images), torch.sigmoid(at_samples)
    share = on_images.mean()
    of_images = factor(at_images[:, None], share, unit.bias).mean(0)
    of_samples = factor(at_samples[:, None], share, unit.bias)
    value = penalty / 2 * unit.square - float(change(of_images, of_samples).gain)
    # The model after the change gives the samples these weights.
    after = torch.softmax(of_samples[:, 0], 0).to(unit.weights)
    linear = after @ at_samples - at_images.mean()
    # What each image adds to the mean of softplus, and through the share to the linear part.
    pull = (on_images - share + linear * on_images * (1 - on_images)) / len(images)
    push = after * (on_samples - share)
    return value, Unit(
        penalty * unit.weights + push @ samples - pull @ images,
        penalty * unit.bias + push.sum() - pull.sum(),
    )


def linear(unit: Unit, images: Tensor, samples: Tensor, penalty: float) -> tuple[float, Unit]:
    """λ/2 |w|² minus the unit's gain to first order (eq. 9), and its gradient; arguments as in `objective`.

    The gain is the mean of softplus(wᵀv) over images, minus that over samples of the model.
    """
    value = penalty / 2 * unit.square
    weights = penalty * unit.weights
    bias = penalty * unit.bias
    for visible, sign in ((images, -1), (samples, 1)):
        inputs = unit.inputs(visible)
        value += sign * float(log_one_plus_exp(inputs.double()).mean())
        share = sign * torch.sigmoid(inputs) / len(visible)
        weights, bias = weights + share @ visible, bias + share.sum()
    return value, Unit(weights, bias)


# What a unit is sought by.
OBJECTIVES = {"gain": objective, "linear": linear}


class Fitting(NamedTuple):
    """The effect of adding a unit at a scale, which is on for a `share` of the images; the gain is in nats."""

    scale: float
    share: float
    gain: float
    overlap: float
    objective: float


def fitting_scale(unit: Unit, images: Tensor, samples: Tensor, penalty: float, overlap: float) -> Fitting | None:
    """Find the scale of a unit that lowers the objective most with enough overlap; None if it gains too little at all.

    The samples (S, D) are others than the unit was sought with; see `change`.
    """
    scales = torch.tensor(SCALES, dtype=torch.float64, device=images.device)
    at_images, at_samples = (unit.inputs(visible).double()[:, None] * scales for visible in (images, samples))
    share = torch.sigmoid(at_images).mean(0)
    bias = scales * unit.bias
    outcome = change(factor(at_images, share, bias).mean(0), factor(at_samples, share, bias))
    objectives = penalty / 2 * scales.square() * unit.square - outcome.gain
    best = most_gaining(outcome, -objectives, overlap)
    if best is None:
        return None
    fitting = (scales, share, outcome.gain, outcome.overlap, objectives)
    return Fitting(*(float(values[best]) for values in fitting))


class Addition(NamedTuple):
    """A unit worth adding, at its final size; the effect; how often L-BFGS evaluated the objective."""

    unit: Unit
    fitting: Fitting
    evaluations: int


def find_unit(
    images: Tensor,
    samples: Tensor,
    fresh: Tensor,
    penalty: float,
    overlap: float,
    generator: torch.Generator,
    sought_by: str = "gain",
) -> Addition | None:
    """Find the unit that lowers the objective most, by L-BFGS from a random start; `fitting_scale` gives its size.

    It does not matter how L-BFGS ends: what counts is that the unit gains more than its penalty. If it does not, the
    search begins again elsewhere with a higher penalty; None if no start leads to a unit.

    So this is a local optimum. On 14 problems of 4 to 9 pixels it gains .90 of what the best of 25 starts does on
    average, .94 as the best of three; but three starts take three times as long, and later units make up for it.

    Args:
        images: (N, D).
        samples: samples of the model to seek the unit with, (S, D).
        fresh: other samples to judge the unit by, (F, D). On the samples it was sought with, a unit gains even if there
            is nothing to learn.
        penalty, overlap: λ, and the least overlap of a change.
        generator: for the starts.
        sought_by: a key of `OBJECTIVES`; the unit's size is always chosen by its gain.
    """
    evaluations = 0
    mean = images.mean(0)
    for stiffness in STIFFNESS:
        weights = torch.randn(images.shape[1], generator=generator, device=images.device, dtype=images.dtype)
        start = Unit(START_SCALE * weights, -START_SCALE * (mean @ weights))
        direction, evaluated = _descend(start, images, samples, stiffness * penalty, sought_by)
        evaluations += evaluated
        fitting = fitting_scale(direction, images, fresh, penalty, overlap)
        if fitting is not None:
            return Addition(direction.scaled(fitting.scale), fitting, evaluations)
    return None


def _descend(start: Unit, images: Tensor, samples: Tensor, penalty: float, sought_by: str) -> tuple[Unit, int]:
    from scipy.optimize import minimize

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = OBJECTIVES[sought_by](_unit(point, images), images, samples, penalty)
        if not math.isfinite(value):
            raise TrainingError("the search for a hidden unit gave numbers that are not finite; raise penalty")
        return value, _point(slope)

    result = minimize(evaluate, _point(start), jac=True, method="L-BFGS-B", options=OPTIONS)
    return _unit(result.x, images), int(result.nfev)


def _unit(point: np.ndarray, like: Tensor) -> Unit:
    values = torch.from_numpy(point).to(like)
    return Unit(values[:-1], values[-1])


def _point(unit: Unit) -> np.ndarray:
    return torch.cat([unit.weights, unit.bias[None]]).double().cpu().numpy()
