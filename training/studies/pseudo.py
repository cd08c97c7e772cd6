"""Pseudo-likelihood: how well each pixel is predicted by all others (Besag, 1975), for all pixels or random ones."""

from __future__ import annotations

import time

import torch
from mean_likelihoods import Likelihood, mean_and_error
from torch import Tensor
from torch.nn.functional import logsigmoid

from restore.errors import UsageError
from restore.evaluation.likelihoods.exact import Model, unnormalised
from restore.priors import RBM, FullyVisible
from restore.units import Bernoulli, log_one_plus_exp

# How many numbers are held at a time when pixels are flipped: 4 megabytes in single precision, which fit into caches.
# With more a CPU takes several times as long.
HELD = 2**20


@torch.inference_mode()
def pseudo_likelihood(model: Model, images: Tensor, pixels: int, generator: torch.Generator) -> Likelihood:
    """Mean over binary images of Σ_i log p(v_i | all other pixels): D / `pixels` times the sum over drawn pixels.

    Args:
        model: any prior over binary images.
        images: shape (N, D), in {0, 1}.
        pixels: how many pixels of each image are drawn, without replacement; D makes the result exact.
        generator: draws them; on the images' device.

    Raises:
        UsageError: if `pixels` is not from 1 to D.
        ModelError: see `unnormalised`.

    >>> fair_coins = RBM.binary(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> found = pseudo_likelihood(fair_coins, torch.zeros(1, 3), pixels=3, generator=torch.Generator())
    >>> round(found.mean, 4)  # of independent pixels it is the likelihood: -3 log 2
    -2.0794
    """
    started = time.perf_counter()
    count, size = images.shape
    if not 1 <= pixels <= size:
        raise UsageError(f"a pseudo-likelihood is over 1 to {size} pixels, not {pixels}")
    unnormalised(model, images[:1])
    draw = torch.rand(count, size, generator=generator, device=images.device)
    chosen = draw.topk(pixels, dim=1).indices
    width = model.hidden.size if isinstance(model, RBM) else size
    step = max(1, HELD // (pixels * width))
    values = torch.cat(
        [
            logsigmoid(log_odds(model, part, index)).sum(1, dtype=torch.float64) * (size / pixels)
            for part, index in zip(images.split(step), chosen.split(step), strict=True)
        ]
    )
    mean, error = mean_and_error(values)
    seconds = time.perf_counter() - started
    return Likelihood("pseudo", count, mean, error, details=(("pixels", pixels),), seconds=seconds)


def log_odds(model: Model, images: Tensor, chosen: Tensor) -> Tensor:
    """F(v with pixel i inverted) - F(v) for chosen pixels i: the log-odds of their values, given all others.

    Args:
        images: (N, D), in {0, 1}.
        chosen: indices of pixels, (N, m).

    Returns:
        Shape (N, m).
    """
    here = images.gather(1, chosen)
    if isinstance(model, FullyVisible) and isinstance(model.visible, Bernoulli):
        odds = model.inputs(0, (images,)) + model.visible.parameters["bias"]
        return (2 * here - 1) * odds.gather(1, chosen)
    if isinstance(model, RBM) and isinstance(model.visible, Bernoulli):
        # Only what this pixel tells the hidden units changes: no product for each image.
        sign = 2 * here - 1
        odds = model.hidden_fields(images).linear + model.hidden.parameters["bias"]
        without = odds[:, None] - sign[:, :, None] * model.weights[chosen]
        hidden = (log_one_plus_exp(odds)[:, None] - log_one_plus_exp(without)).sum(-1)
        return sign * model.visible.parameters["bias"][chosen] + hidden
    inverted = images[:, None].repeat(1, chosen.shape[1], 1).scatter(2, chosen[:, :, None], 1 - here[:, :, None])
    return model.free_energy(inverted.flatten(0, 1)).view_as(here) - model.free_energy(images)[:, None]
