"""The TAP log-likelihood: log Z from TAP solutions (TAP machine, sec. V and VII, appendix E), for units of any kind.

Where pixels are real-valued it is a log-density: with respect to Lebesgue measure, and for pixels that may be exactly 0
to Lebesgue measure and an atom of weight 1 at 0. Such an image counts with the probability of its zeros, times the
density of its other pixels; figures of binary, grey, and often black pixels cannot be compared with each other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods.result import Likelihood, mean_and_error, unnormalised
from restore.marginals import Status
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.solvers import TAP

# Share of starts that should converge for their mean to be called a TAP likelihood.
MOSTLY = 0.9


@dataclass(frozen=True)
class LogWeights:
    """Logs of the unnormalised probabilities of images.

    Attributes:
        values: shape (N,), float64.
        unfinished: number of images that the iteration limit was reached for.
    """

    values: Tensor
    unfinished: int


@torch.inference_mode()
def log_weights(machine: LayeredPrior | FullyVisible, images: Tensor, solver: TAP | None = None) -> LogWeights:
    """log p(x) + log Z of images (N, D), all but the pixels summed out.

    That is exact where the hidden units are independent given an image. With further layers they are not, and TAP's
    log Z of the machine clamped to the image takes the place of their sum (appendix E).

    Raises:
        ModelError: if it is no finite number for some image, as where the image lies outside the range of the pixels.
    """
    if isinstance(machine, RBM | FullyVisible):
        return LogWeights(unnormalised(machine, images), 0)
    found = (solver or TAP()).solve(machine.above(images))
    values = machine.layers[0].log_weight(images).double().sum(-1) + found.log_partition
    if not bool(values.isfinite().all()):
        raise ModelError("TAP finds no finite log Z of the model given some images; train it again")
    return LogWeights(values, int((found.status != int(Status.CONVERGED)).sum()))


@torch.inference_mode()
def tap_likelihood(
    machine: LayeredPrior | FullyVisible, images: Tensor, starts: Tensor, solver: TAP | None = None
) -> Likelihood:
    """Mean log-weight of images (N, D), see `log_weights`, minus the mean of log Z over TAP solutions.

    An approximation and no bound: log Z may come out too large or too small.

    Args:
        machine: a prior that TAP solves.
        images: shape (N, D), in the range of the pixels.
        starts: images that the solutions are thermalised from, (K, D): the paper takes 100 of those it trains on.
        solver: by default TAP with its own settings.

    Raises:
        UsageError: if there is no start.
        ModelError: if no start leads to a solution; see also `log_weights`.
    """
    started = time.perf_counter()
    if not len(starts):
        raise UsageError("a TAP likelihood needs at least one start")
    weighed = log_weights(machine, images, solver)
    mean, error = mean_and_error(weighed.values)
    found = (solver or TAP()).solve(machine, starts)
    usable = (found.status != int(Status.DIVERGED)) & found.log_partition.isfinite()
    if not bool(usable.any()):
        raise ModelError(f"TAP diverged from all of {len(starts)} starts; the model has no TAP likelihood")
    log_z, log_z_error = mean_and_error(found.log_partition[usable])
    converged = int((found.status == int(Status.CONVERGED)).sum())
    warnings = []
    if converged < MOSTLY * len(starts):
        warnings.append(f"only {converged} of {len(starts)} starts converged to a TAP solution")
    if weighed.unfinished > (1 - MOSTLY) * len(images):
        warnings.append(f"given {weighed.unfinished} of {len(images)} images the hidden layers did not converge")
    details = (("starts", len(starts)), ("converged", converged))
    seconds = time.perf_counter() - started
    return Likelihood(
        "tap",
        len(images),
        mean - log_z,
        error,
        log_z,
        log_z_error,
        details=details,
        warnings=tuple(warnings),
        seconds=seconds,
    )
