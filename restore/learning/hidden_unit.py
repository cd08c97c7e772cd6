"""One hidden unit at a time: the unit that Frank-Wolfe adds next, how much of it, and what adding or removing it gains.

All of it needs nothing of the model but samples, which stay the same while the unit is sought (Frank-Wolfe RBM, eq. 9).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.units import log_one_plus_exp

# L-BFGS for one unit ends after so many iterations, or at a gradient that is nowhere larger; more changes no gain.
ITERATIONS = 30
GRADIENT = 1e-4

OPTIONS = {"maxiter": ITERATIONS, "gtol": GRADIENT}

# Standard deviation of the weights that the search for a unit starts from.
START_SCALE = 0.1

# Penalties to search with, as multiples of the penalty, one after another until one leads to a unit. A stiffer search
# finds a smaller unit, which a model that is nearly done, or has few samples, still takes.
STIFFNESS = (1.0, 3.0, 10.0, 30.0, 100.0)

# A gain of less than this, in nats, is one of rounding: a search that ends at no unit at all ends beside it.
ROUNDING = 1e-9

# What a unit may be scaled to; the search is along its direction (see `fitting_scale`).
SCALES = tuple(2 ** (-step / 2) for step in range(13))


class Unit(NamedTuple):
    """A hidden unit: weights (D,) and bias (zero-dimensional), the weight of a visible unit that is always 1."""

    weights: Tensor
    bias: Tensor

    def inputs(self, visible: Tensor) -> Tensor:
        """wᵀv + c of visible states (N, D); shape (N,)."""
        return visible @ self.weights + self.bias

    def scaled(self, scale: float) -> Unit:
        return Unit(scale * self.weights, scale * self.bias)

    @property
    def square(self) -> float:
        """|w|², the bias included: what the penalty of a unit is half λ times of."""
        return float(self.weights.double().square().sum() + self.bias.double().square())


def objective(unit: Unit, images: Tensor, samples: Tensor, drift: Tensor, penalty: float) -> tuple[float, Unit]:
    """λ/2 |w|² + mean of φ over samples of the model - mean of φ over images (eq. 9), and its gradient.

    The paper has softplus(x) for φ. Here it is softplus(x) - s (x - c), see `factor`, with the share s of images that
    the unit is on for. Where the visible bias has made the means of the model those of the images the two objectives
    are equal. Short of that, and samples never agree quite, eq. 9 is lowest at a unit that is always on and repeats
    the difference of the means, which is the bias's business.

    Args:
        unit: where.
        images: (N, D).
        samples: (S, D).
        drift: mean of the samples minus mean of the images, (D,).
        penalty: λ.
    """
    at_images, at_samples = unit.inputs(images), unit.inputs(samples)
    on_images, on_samples = torch.sigmoid(at_images), torch.sigmoid(at_samples)
    share, linear = on_images.mean(), unit.weights @ drift
    value = (
        penalty / 2 * unit.square
        + float(log_one_plus_exp(at_samples.double()).mean() - log_one_plus_exp(at_images.double()).mean())
        - float(share.double() * linear.double())
    )
    # Of an image: what it adds to the mean of softplus, and through the share to the linear part.
    pull = (on_images + linear * on_images * (1 - on_images)) / len(images)
    push = on_samples / len(samples)
    return value, Unit(
        penalty * unit.weights + push @ samples - pull @ images - share * drift,
        penalty * unit.bias + push.sum() - pull.sum(),
    )


class Change(NamedTuple):
    """What a change of the model by a factor exp(φ(v)) does.

    Attributes:
        gain: rise of the mean log-likelihood of the images, in nats.
        error: standard error of that, from the number of samples.
        overlap: effective share of the samples that stay typical after the change, in (0, 1]; where it is small, what
            the model does is no longer known from its samples, and the gain is not to be trusted.
    """

    gain: float
    error: float
    overlap: float


def change(images: Tensor, samples: Tensor) -> Change:
    """Mean of φ over images minus log of the mean of exp φ over samples of the model.

    Args:
        images: φ of each image, (N,), float64.
        samples: φ of each sample, (S,), float64.
    """
    weight = torch.softmax(samples, 0)
    count = len(samples)
    log_mean = float(torch.logsumexp(samples, 0)) - math.log(count)
    overlap = 1 / (count * float(weight.square().sum()))
    return Change(float(images.mean()) - log_mean, math.sqrt(max(0.0, 1 / overlap - 1) / count), overlap)


def factor(inputs: Tensor, share: float, bias: float, power: float) -> Tensor:
    """φ = k (softplus(x) - s (x - c)): a unit of power k, together with what the visible bias takes back of it.

    A unit also shifts the means of the visible units it is joined to. Where it is on for a share s of the images, the
    visible bias gives way by k s w, so that to first order those means stay (the same gauge as in `centring`).

    Args:
        inputs: x = wᵀv + c, (N,).
        share: s.
        bias: c.
        power: k.
    """
    return power * (log_one_plus_exp(inputs.double()) - share * (inputs.double() - bias))


class Fitting(NamedTuple):
    """A unit of a certain size.

    Attributes:
        scale: how much of the unit found.
        share: of the images that it is on for.
        change: what adding it does.
        objective: eq. 9 there; that of no unit is 0.
        net: the gain after the penalty.
    """

    scale: float
    share: float
    change: Change
    objective: float
    net: float


def fitting_scale(
    unit: Unit, images: Tensor, samples: Tensor, penalty: float, power: float, overlap: float
) -> Fitting | None:
    """How much of a unit to add: what gains most after penalty, lowers the objective, and has overlap enough.

    The objective is linear in the model, so it knows the direction, but not where to stop: a unit at its minimum may
    multiply probabilities by many powers of ten, of which the samples say nothing.

    Args:
        unit: the direction.
        images: (N, D).
        samples: (S, D).
        penalty: λ.
        power: the unit's.
        overlap: least overlap of samples before and after; see `Change`.

    Returns:
        None if there is no such scale at which the unit gains more than its penalty.
    """
    at_images, at_samples = unit.inputs(images), unit.inputs(samples)

    def fitted(scale: float) -> Fitting:
        share, bias = float(torch.sigmoid(scale * at_images).mean()), scale * float(unit.bias)
        of_images, of_samples = (factor(scale * inputs, share, bias, 1.0) for inputs in (at_images, at_samples))
        cost = penalty / 2 * scale**2 * unit.square
        outcome = change(power * of_images, power * of_samples)
        value = cost + float(of_samples.mean() - of_images.mean())
        return Fitting(scale, share, outcome, value, outcome.gain - power * cost)

    eligible = [
        fitting
        for fitting in map(fitted, SCALES)
        if fitting.change.overlap >= overlap and fitting.objective < 0 and fitting.net > ROUNDING
    ]
    return max(eligible, key=lambda fitting: fitting.net) if eligible else None


class Found(NamedTuple):
    """A unit worth adding.

    Attributes:
        unit: already of the right size.
        fitting: what adding it does.
        evaluations: of the objective by L-BFGS.
    """

    unit: Unit
    fitting: Fitting
    evaluations: int


def find_unit(
    images: Tensor, samples: Tensor, penalty: float, power: float, overlap: float, generator: torch.Generator
) -> Found | None:
    """The unit that lowers the objective most, by L-BFGS from a random start, in the size that gains most.

    How L-BFGS itself judges its end does not matter: what counts is that the unit lowers the objective, and that it
    gains more than its penalty. Where it does not, the search is begun again elsewhere, with a higher penalty.

    Args:
        images: (N, D).
        samples: of the model, (S, D).
        penalty: λ.
        power: the unit's.
        overlap: see `fitting_scale`.
        generator: of the starts.

    Returns:
        The unit; None if no start led to one.

    Raises:
        TrainingError: if the objective is not finite.
    """
    evaluations = 0
    mean = images.mean(0)
    drift = samples.mean(0) - mean
    for stiffness in STIFFNESS:
        weights = torch.randn(images.shape[1], generator=generator, device=images.device, dtype=images.dtype)
        start = Unit(START_SCALE * weights, -START_SCALE * (mean @ weights))
        direction, evaluated = _descend(start, images, samples, drift, stiffness * penalty)
        evaluations += evaluated
        fitting = fitting_scale(direction, images, samples, penalty, power, overlap)
        if fitting is not None:
            return Found(direction.scaled(fitting.scale), fitting, evaluations)
    return None


def _descend(start: Unit, images: Tensor, samples: Tensor, drift: Tensor, penalty: float) -> tuple[Unit, int]:
    """Where L-BFGS ends, and how often it evaluated the objective."""
    from scipy.optimize import minimize

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(_unit(point, images), images, samples, drift, penalty)
        if not math.isfinite(value):
            raise TrainingError("the search for a hidden unit left the finite numbers; raise penalty")
        return value, _point(slope)

    result = minimize(evaluate, _point(start), jac=True, method="L-BFGS-B", options=OPTIONS)
    return _unit(result.x, images), int(result.nfev)


def _unit(point: np.ndarray, like: Tensor) -> Unit:
    values = torch.from_numpy(point).to(like)
    return Unit(values[:-1], values[-1])


def _point(unit: Unit) -> np.ndarray:
    return torch.cat([unit.weights, unit.bias[None]]).double().cpu().numpy()
