"""The TAP log-likelihood: log Z from TAP solutions (TAP machine, sec. V and VII, appendix E), for units of any kind.

For real-valued pixels it is a log-density with respect to Lebesgue measure; if pixels may be exactly 0, there is also
an atom of weight 1 at 0. Such an image counts with the probability of its zeros, times the density of its other pixels.
So figures of binary, grey, and often black pixels cannot be compared.

A machine has many solutions s, each with its own log Z_s. The paper takes their mean (sec. V, Fig. 2), which describes
one typical mode: it is smaller than log Z of all modes together by the log of their number, if all weigh the same. If
each solution is a mode, log Z = log Σ_s exp(log Z_s) over the distinct ones, except for modes that no start found. Both
are approximations, not bounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from mean_likelihoods import Likelihood, mean_and_error
from probing.solutions import MOSTLY, PROBING, Solutions, tap_solutions
from settling import Settling
from torch import Tensor

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods.exact import unnormalised
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.solvers import TAP
from restore.status import Status
from restore.zoo.inference import Inference


@dataclass(frozen=True)
class LogWeights:
    """Logs of the unnormalised probabilities of images.

    Attributes:
        values: shape (N,), float64.
        unfinished: number of images for which the iteration limit was reached.
    """

    values: Tensor
    unfinished: int


def precise_solver(settings: Inference) -> TAP:
    """The solver for a prior's TAP solutions: its own damping, and the tolerance that log Z needs.

    When the pixels of a restoration have converged, log Z may still change by nats.
    """
    return replace(PROBING, damping=settings.damping, max_iter=max(settings.max_iter, PROBING.max_iter))


@torch.inference_mode()
def log_weights(machine: LayeredPrior | FullyVisible, images: Tensor, solver: TAP = PROBING) -> LogWeights:
    """log p(x) + log Z of images (N, D), with all units but the pixels summed out.

    This is exact if the hidden units are independent given an image. With further layers they are not, and TAP's log Z
    of the machine clamped to the image replaces their sum (appendix E).

    Raises:
        ModelError: if it is not finite for some image, for instance because the image is outside the pixels' range.
    """
    # In single precision some clamped machines do not converge far enough.
    machine, images = machine.to(torch.float64), images.double()
    if isinstance(machine, RBM | FullyVisible):
        return LogWeights(unnormalised(machine, images), 0)
    found = Settling(solver).solve(machine.above(images))
    values = machine.layers[0].log_weight(images).sum(-1) + found.log_partition
    if not bool(values.isfinite().all()):
        raise ModelError("TAP finds no finite log Z of the model given some images; train it again")
    return LogWeights(values, int((found.status != int(Status.CONVERGED)).sum()))


@torch.inference_mode()
def tap_likelihood(
    machine: LayeredPrior | FullyVisible, images: Tensor, starts: Tensor, solver: TAP = PROBING
) -> Likelihood:
    """Mean log-weight of images (N, D), see `log_weights`, minus log Z from the distinct TAP solutions.

    `mean` and `log_partition` use the mean of log Z over the solutions, as the paper does, with its standard error over
    them. The details "mean_by_log_sum_exp" and "log_partition_by_log_sum_exp" use the sum over solutions.

    Args:
        machine: a prior that TAP solves.
        images: shape (N, D), in the range of the pixels.
        starts: images from which solutions are found, (K, D); the paper takes 100 training images.
        solver: for the first try of each start, see `Settling`; `precise_solver` makes it for a prior.

    Raises:
        UsageError: if there is no start.
        ModelError: if no start leads to a solution; see also `log_weights`.

    >>> machine = RBM.binary(torch.full((8, 1), 4.0), torch.full((8,), -2.0), torch.full((1,), -16.0))
    >>> images = torch.stack([torch.zeros(8), torch.ones(8)])
    >>> details = dict(tap_likelihood(machine, images, starts=images, solver=TAP()).details)
    >>> details["solutions"], round(details["mean_by_log_sum_exp"], 2)  # exactly -1.71
    (2, -1.71)
    """
    started = time.perf_counter()
    if not len(starts):
        raise UsageError("a TAP likelihood needs at least one start")
    weighed = log_weights(machine, images, solver)
    mean, error = mean_and_error(weighed.values)
    found = tap_solutions(machine, starts, solver)
    if found.log_sum_exp is None:
        raise ModelError(
            f"no TAP likelihood: none of {found.starts} starts led to a TAP solution ({found.failures}); "
            "give other starts, or measure another likelihood"
        )
    log_z, log_z_error = mean_and_error(found.log_partition)
    summed = found.log_sum_exp
    return Likelihood(
        "tap",
        len(images),
        mean - log_z,
        error,
        log_z,
        log_z_error,
        details=(
            ("mean_by_log_sum_exp", mean - summed),
            ("log_partition_by_log_sum_exp", summed),
            ("starts", found.starts),
            ("converged", found.converged),
            ("solutions", found.count),
        ),
        warnings=tuple(_warnings(found, weighed)),
        seconds=time.perf_counter() - started,
    )


def _warnings(found: Solutions, weighed: LogWeights) -> Iterator[str]:
    """Sentences on what makes the figures less certain."""
    if found.converged < MOSTLY * found.starts:
        yield f"only {found.converged} of {found.starts} starts led to a TAP solution ({found.failures})"
    images = len(weighed.values)
    if weighed.unfinished > (1 - MOSTLY) * images:
        yield f"given {weighed.unfinished} of {images} images the hidden layers did not converge"
