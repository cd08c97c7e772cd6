"""The TAP log-likelihood: log Z from TAP solutions (TAP machine, sec. V and VII, appendix E), for units of any kind.

Where pixels are real-valued it is a log-density: with respect to Lebesgue measure, and for pixels that may be exactly 0
to Lebesgue measure and an atom of weight 1 at 0. Such an image counts with the probability of its zeros, times the
density of its other pixels; figures of binary, grey, and often black pixels cannot be compared with each other.

A machine has many solutions s, each with a log Z_s of its own. The paper takes their mean (sec. V, Fig. 2), which is
that of a typical mode alone: smaller than log Z of the machine, which has the modes together, by the log of their
number if all weigh the same. Where each solution is a mode, log Z = log Σ_s exp(log Z_s) over the distinct ones, but
for the modes that no start led to. Both are approximations and no bounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods.result import Likelihood, mean_and_error, unnormalised
from restore.evaluation.probing.solutions import MOSTLY, PROBING, Solutions, tap_solutions
from restore.marginals import Status
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.solvers import TAP
from restore.solvers.settling import Settling
from restore.zoo.description import Inference


@dataclass(frozen=True)
class LogWeights:
    """Logs of the unnormalised probabilities of images.

    Attributes:
        values: shape (N,), float64.
        unfinished: number of images that the iteration limit was reached for.
    """

    values: Tensor
    unfinished: int


def solver_of(settings: Inference) -> TAP:
    """What finds the TAP solutions of a prior: its own damping, to the tolerance that a log Z needs.

    Restorations stop at a change of their pixels that log Z still moves by nats after.
    """
    return replace(PROBING, damping=settings.damping, max_iter=max(settings.max_iter, PROBING.max_iter))


@torch.inference_mode()
def log_weights(machine: LayeredPrior | FullyVisible, images: Tensor, solver: TAP = PROBING) -> LogWeights:
    """log p(x) + log Z of images (N, D), all but the pixels summed out.

    That is exact where the hidden units are independent given an image. With further layers they are not, and TAP's
    log Z of the machine clamped to the image takes the place of their sum (appendix E).

    Raises:
        ModelError: if it is no finite number for some image, as where the image lies outside the range of the pixels.
    """
    # In single precision some clamped machines do not settle as far as they should.
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

    `mean` and `log_partition` take the mean of log Z over the solutions, as the paper does, and the error of that is
    its standard error over them; the details "mean_by_log_sum_exp" and "log_partition_by_log_sum_exp" take their sum.

    Args:
        machine: a prior that TAP solves.
        images: shape (N, D), in the range of the pixels.
        starts: images that the solutions are thermalised from, (K, D): the paper takes 100 of those it trains on.
        solver: for the first try of each start, see `Settling`; `solver_of` has that of a prior.

    Raises:
        UsageError: if there is no start.
        ModelError: if no start leads to a solution; see also `log_weights`.
    """
    started = time.perf_counter()
    if not len(starts):
        raise UsageError("a TAP likelihood needs at least one start")
    weighed = log_weights(machine, images, solver)
    mean, error = mean_and_error(weighed.values)
    found = tap_solutions(machine, starts, solver)
    if found.log_sum_exp is None:
        raise ModelError(
            f"no TAP solution, and so no TAP likelihood: none of {found.starts} starts settled ({found.failures}); "
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
    """Sentences on what weakens the figures."""
    if found.converged < MOSTLY * found.starts:
        yield f"only {found.converged} of {found.starts} starts led to a TAP solution ({found.failures})"
    images = len(weighed.values)
    if weighed.unfinished > (1 - MOSTLY) * images:
        yield f"given {weighed.unfinished} of {images} images the hidden layers did not converge"
