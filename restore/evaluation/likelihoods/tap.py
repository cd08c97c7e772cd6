"""The TAP log-likelihood: exact unnormalised probabilities, log Z from TAP solutions (TAP machine, sec. V and VII)."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods.result import Likelihood, mean_and_error, unnormalised
from restore.marginals import Status
from restore.priors import RBM
from restore.solvers import TAP

# Share of starts that should converge for their mean to be called a TAP likelihood.
MOSTLY = 0.9


@torch.inference_mode()
def tap_likelihood(machine: RBM, images: Tensor, starts: Tensor, solver: TAP | None = None) -> Likelihood:
    """Mean of -F(v) over binary images (N, D), minus the mean of log Z over TAP solutions.

    An approximation and no bound: log Z may come out too large or too small.

    Args:
        machine: a prior that TAP solves.
        images: shape (N, D), in {0, 1}.
        starts: images that the solutions are thermalised from, (K, D): the paper takes 100 of those it trains on.
        solver: by default TAP with its own settings.

    Raises:
        UsageError: if there is no start.
        ModelError: if no start leads to a solution; see also `unnormalised`.
    """
    started = time.perf_counter()
    if not len(starts):
        raise UsageError("a TAP likelihood needs at least one start")
    mean, error = mean_and_error(unnormalised(machine, images))
    found = (solver or TAP()).solve(machine, starts)
    usable = (found.status != int(Status.DIVERGED)) & found.log_partition.isfinite()
    if not bool(usable.any()):
        raise ModelError(f"TAP diverged from all of {len(starts)} starts; the model has no TAP likelihood")
    log_z, log_z_error = mean_and_error(found.log_partition[usable])
    converged = int((found.status == int(Status.CONVERGED)).sum())
    warnings = (
        (f"only {converged} of {len(starts)} starts converged to a TAP solution",)
        if converged < MOSTLY * len(starts)
        else ()
    )
    details = (("starts", len(starts)), ("converged", converged))
    seconds = time.perf_counter() - started
    return Likelihood(
        "tap", len(images), mean - log_z, error, log_z, log_z_error, details=details, warnings=warnings, seconds=seconds
    )
