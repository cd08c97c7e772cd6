"""Fit a layer of independent units to images by maximum likelihood: where learning starts, and the pixelwise estimator.

Each pixel has an exponential family, so the likelihood is concave in its natural parameters, with its maximum where the
expected statistics equal the images' own. Newton's method finds it for all pixels at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.fields import Fields
from restore.units import Units

Layer = TypeVar("Layer", bound=Units)

# Larger natural parameters make a pixel no more certain in 8 bits, and its units slower to compute.
LARGEST_PARAMETER = 300.0

# The prior knowledge counts as this many images: a constant pixel still has finite log-odds.
PSEUDO_COUNT = 1.0

# A step that promises less, in nats per image, counts as the last.
NEGLIGIBLE_STEP = 1e-9

# The most steps; some ten are usual.
MAX_STEPS = 200

# A statistic that varies less, as that of a nearly certain pixel, counts as having this variance.
FLAT = 1e-8

# The relative shift of a parameter by which curvature is measured.
SHIFT = 1e-3


def pixel_means(images: Tensor) -> Tensor:
    """Mean of each pixel over images (N, D) in [0, 1], kept inside (0, 1) by a pseudo-count; shape (D,)."""
    return (images.sum(0) + PSEUDO_COUNT / 2) / (len(images) + PSEUDO_COUNT)


def independent_units(units: Layer, images: Tensor) -> Layer:
    """Fit the natural parameters of largest likelihood, each within ±LARGEST_PARAMETER, to images (N, D).

    The search starts at the given layer, which counts as one more image, so that constant pixels keep finite
    parameters. It should be broad, such as the uniform distribution that zeros give on a bounded support.
    """
    low, high = units.support
    if images.dim() != 2 or images.shape[1] != units.size or len(images) == 0:
        raise TrainingError(
            f"images of shape {tuple(images.shape)} do not fit {units.size} units; give (N, {units.size})"
        )
    if not bool(((images >= low) & (images <= high)).all()):
        raise TrainingError(f"an image has a value outside [{low:g}, {high:g}], the support of the units; rescale it")
    start = _stacked(units, {name: value.double() for name, value in units.parameters.items()})
    means = {name: value.mean(0, dtype=torch.float64) for name, value in units.statistics(images).items()}
    observed, expected = _stacked(units, means), _expected(units, start)
    target = (len(images) * observed + PSEUDO_COUNT * expected) / (len(images) + PSEUDO_COUNT)
    parameters = dict(zip(units.parameters, _matched(units, start, target), strict=True))
    return units.with_parameters({name: parameters[name].to(value) for name, value in units.parameters.items()})


def _matched(units: Layer, start: Tensor, target: Tensor) -> Tensor:
    """The natural parameters whose expected statistics are `target`; all tensors (K, D).

    Damping as in the Levenberg-Marquardt method: a step that loses is undone, and the next ones are shorter. Bounds as
    in Bertsekas, Projected Newton Methods (SIAM J. Control Optim. 20, 1982): a parameter at its bound whose gradient
    points outwards stays, and the others move as if it were constant.
    """
    parameters = start.clamp(-LARGEST_PARAMETER, LARGEST_PARAMETER)
    loss = _loss(units, parameters, target)
    damping = torch.full_like(loss, 1e-3)
    for _ in range(MAX_STEPS):
        slope = _expected(units, parameters) - target
        free = (parameters.abs() < LARGEST_PARAMETER) | (parameters * slope > 0)
        step = _step(_covariance(units, parameters), torch.where(free, slope, 0.0), free, damping)
        if bool(((slope * step).sum(0) < NEGLIGIBLE_STEP).all()):
            return parameters
        trial = (parameters - step).clamp(-LARGEST_PARAMETER, LARGEST_PARAMETER)
        trial_loss = _loss(units, trial, target)
        gains = trial_loss < loss
        parameters, loss = torch.where(gains, trial, parameters), torch.where(gains, trial_loss, loss)
        damping = torch.where(gains, damping / 10, damping * 10)
    raise TrainingError(f"independent units were not found in {MAX_STEPS} steps; start from broader ones")


def _step(covariance: Tensor, slope: Tensor, free: Tensor, damping: Tensor) -> Tensor:
    """Newton's step (K, D) of the free parameters, damped in units of each statistic's own spread."""
    free, count = free.T, len(slope)
    unit = torch.eye(count, dtype=slope.dtype, device=slope.device)
    curvature = torch.where(free[:, :, None] & free[:, None, :], covariance + FLAT * unit, unit)
    spread = curvature.diagonal(dim1=1, dim2=2).sqrt()
    correlation = curvature / (spread[:, :, None] * spread[:, None, :])
    return (torch.linalg.solve(correlation + damping[:, None, None] * unit, slope.T / spread) / spread).T


def _loss(units: Layer, parameters: Tensor, target: Tensor) -> Tensor:
    """Minus the log-likelihood per image, (D,)."""
    return _at(units, parameters).log_partition(_nothing(parameters)) - (parameters * target).sum(0)


def _expected(units: Layer, parameters: Tensor) -> Tensor:
    """Expected statistics, in the shape (K, ..., D) of the parameters."""
    return _stacked(units, _at(units, parameters).expected_statistics(_nothing(parameters)))


def _covariance(units: Layer, parameters: Tensor) -> Tensor:
    """Covariance of the statistics (D, K, K), as the derivative of their expectation."""
    shift = SHIFT * parameters.abs().clamp_min(1)
    apart = torch.eye(len(parameters), dtype=parameters.dtype, device=parameters.device)[:, :, None] * shift
    up, down = (_expected(units, parameters[:, None] + sign * apart) for sign in (1, -1))
    slopes = ((up - down) / (2 * shift)).permute(2, 0, 1)
    return (slopes + slopes.mT) / 2


def _at(units: Layer, parameters: Tensor) -> Layer:
    return units.with_parameters(dict(zip(units.parameters, parameters, strict=True)))


def _nothing(parameters: Tensor) -> Fields:
    return Fields(torch.zeros_like(parameters[0]))


def _stacked(units: Layer, values: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([values[name] for name in units.parameters])
