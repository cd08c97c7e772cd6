"""One hidden unit at a time: the unit that Frank-Wolfe adds next, how much of it, and what adding or removing it gains.

All of it needs nothing of the model but samples, which stay the same while the unit is sought, and later ones for
judging it (Frank-Wolfe RBM, eq. 9).
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

# What a unit may be scaled to (see `fitting_scale`).
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


class Change(NamedTuple):
    """What changes of the model by factors exp(φ(v)) do, each by itself; float64, shape (K,) for K of them.

    Attributes:
        gain: rise of the mean log-likelihood of the images, in nats.
        error: standard error of that, from the number of samples.
        overlap: effective share of the samples that stay typical after the change, in (0, 1]; where it is small, what
            the model does is no longer known from its samples, and the gain is not to be trusted.
    """

    gain: Tensor
    error: Tensor
    overlap: Tensor


def change(images: Tensor, samples: Tensor) -> Change:
    """Mean of φ over images minus log of the mean of exp φ over samples of the model.

    Too high where φ was sought with the same samples: it is small on those.

    Args:
        images: mean of φ over images, (K,), float64.
        samples: φ of each sample, (S, K), float64.
    """
    count = len(samples)
    overlap = 1 / (count * torch.softmax(samples, 0).square().sum(0))
    gain = images - (torch.logsumexp(samples, 0) - math.log(count))
    return Change(gain, ((1 / overlap - 1).clamp(min=0) / count).sqrt(), overlap)


def most_gaining(outcome: Change, net: Tensor, overlap: float) -> int | None:
    """Which change has the highest net gain, of those that have one, and overlap enough; None if there is none.

    Args:
        outcome: of the changes.
        net: their gains after penalty, (K,).
        overlap: see `Change`.
    """
    eligible = (outcome.overlap >= overlap) & (net > ROUNDING)
    return int(torch.where(eligible, net, -torch.inf).argmax()) if bool(eligible.any()) else None


def factor(inputs: Tensor, share: Tensor, bias: Tensor) -> Tensor:
    """φ = softplus(x) - s (x - c): a unit, together with what the visible bias takes back of it.

    A unit also shifts the means of the visible units it is joined to. Where it is on for a share s of the images, the
    visible bias gives way by s w, so that to first order those means stay (the same gauge as in `centring`).

    Args:
        inputs: x = wᵀv + c of K units, (N, K).
        share: s, (K,).
        bias: c, (K,).
    """
    return log_one_plus_exp(inputs.double()) - share * (inputs.double() - bias)


def objective(unit: Unit, images: Tensor, samples: Tensor, penalty: float) -> tuple[float, Unit]:
    """λ/2 |w|² minus what the unit gains the images (see `factor` and `change`), and the gradient of that.

    For a small unit this is the paper's eq. 9, less what the visible bias takes back. That is never the larger of the
    two (Jensen's inequality): where this is negative so is that. But at the minimum of eq. 9 a unit multiplies the
    probability of some samples by many powers of ten, and of the model after that the samples say nothing; scaled down
    to where they do, such a unit gains far less than the one that is sought here.

    Args:
        unit: where.
        images: (N, D).
        samples: (S, D).
        penalty: λ.
    """
    at_images, at_samples = unit.inputs(images), unit.inputs(samples)
    on_images, on_samples = torch.sigmoid(at_images), torch.sigmoid(at_samples)
    share = on_images.mean()
    of_images = factor(at_images[:, None], share, unit.bias).mean(0)
    of_samples = factor(at_samples[:, None], share, unit.bias)
    value = penalty / 2 * unit.square - float(change(of_images, of_samples).gain)
    # The model after the change has these shares of the samples.
    after = torch.softmax(of_samples[:, 0], 0).to(unit.weights)
    linear = after @ at_samples - at_images.mean()
    # Of an image: what it adds to the mean of softplus, and through the share to the linear part.
    pull = (on_images - share + linear * on_images * (1 - on_images)) / len(images)
    push = after * (on_samples - share)
    return value, Unit(
        penalty * unit.weights + push @ samples - pull @ images,
        penalty * unit.bias + push.sum() - pull.sum(),
    )


class Fitting(NamedTuple):
    """A unit of a certain size.

    Attributes:
        scale: how much of the unit found.
        share: of the images that it is on for.
        gain: what adding it does to the mean log-likelihood of the images, in nats.
        overlap: see `Change`.
        objective: see there; that of no unit is 0.
    """

    scale: float
    share: float
    gain: float
    overlap: float
    objective: float


def fitting_scale(unit: Unit, images: Tensor, samples: Tensor, penalty: float, overlap: float) -> Fitting | None:
    """How much of a unit to add: what lowers the objective most, and has overlap enough.

    Args:
        unit: as it was found.
        images: (N, D).
        samples: (S, D), not those that it was sought with; see `change`.
        penalty: λ.
        overlap: least overlap of samples before and after; see `Change`.

    Returns:
        None if there is no scale at which the unit gains more than its penalty.
    """
    scales = torch.tensor(SCALES, dtype=torch.float64, device=images.device)
    at_images, at_samples = (unit.inputs(visible).double()[:, None] * scales for visible in (images, samples))
    share, bias = torch.sigmoid(at_images).mean(0), scales * unit.bias
    outcome = change(factor(at_images, share, bias).mean(0), factor(at_samples, share, bias))
    objectives = penalty / 2 * scales.square() * unit.square - outcome.gain
    best = most_gaining(outcome, -objectives, overlap)
    if best is None:
        return None
    found = (scales, share, outcome.gain, outcome.overlap, objectives)
    return Fitting(*(float(values[best]) for values in found))


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
    images: Tensor,
    samples: Tensor,
    fresh: Tensor,
    penalty: float,
    overlap: float,
    generator: torch.Generator,
) -> Found | None:
    """The unit that lowers the objective most, by L-BFGS from a random start; see `fitting_scale` for its size.

    How L-BFGS itself judges its end does not matter: what counts is that the unit gains more than its penalty. Where it
    does not, the search is begun again elsewhere, with a higher penalty.

    Args:
        images: (N, D).
        samples: of the model, to seek the unit with, (S, D).
        fresh: other samples of it, to judge the unit by, (F, D). On the samples that it was sought with a unit gains
            even where there is nothing to learn.
        penalty: λ.
        overlap: see `fitting_scale`.
        generator: of the starts.

    Returns:
        The unit; None if no start led to one.

    Raises:
        TrainingError: if the objective is not finite.
    """
    evaluations = 0
    mean = images.mean(0)
    for stiffness in STIFFNESS:
        weights = torch.randn(images.shape[1], generator=generator, device=images.device, dtype=images.dtype)
        start = Unit(START_SCALE * weights, -START_SCALE * (mean @ weights))
        direction, evaluated = _descend(start, images, samples, stiffness * penalty)
        evaluations += evaluated
        fitting = fitting_scale(direction, images, fresh, penalty, overlap)
        if fitting is not None:
            return Found(direction.scaled(fitting.scale), fitting, evaluations)
    return None


def _descend(start: Unit, images: Tensor, samples: Tensor, penalty: float) -> tuple[Unit, int]:
    """Where L-BFGS ends, and how often it evaluated the objective."""
    from scipy.optimize import minimize

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(_unit(point, images), images, samples, penalty)
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
