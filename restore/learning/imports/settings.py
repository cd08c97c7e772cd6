"""Find what a machine needs to restore images, from images that it draws itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from restore.evaluation.likelihoods.ais import log_partition
from restore.inference.torch_engine import Engine
from restore.learning.course import independent_pixels, pixel_means
from restore.learning.modes import own_modes
from restore.learning.recipes.plan import STARTS
from restore.learning.run.judging import Trial
from restore.marginals import Status
from restore.priors import RBM
from restore.progress import Meter
from restore.solvers import TAP, solver_of
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference, calmer

# Images that are drawn, and the sweeps in which each cools down from noise.
IMAGES, SWEEPS = 500, 600

# Images that are damaged and restored, how, and the share for which the solver has to converge within so many steps.
TRIED, DAMAGE, ENOUGH, STEPS = 100, ("flip:0.05", "flip:0.1", "flip:0.2"), 0.95, 500

# Steps are allowed in hundreds, this many times as many as were needed.
MARGIN = 2

# Further settings of a solver that are tried where it does not converge: each halves its steps.
CALMER = 3

# Runs of annealing, and their temperatures.
RUNS, TEMPERATURES = 100, "linear:1000"


@dataclass(frozen=True)
class Settled:
    """A prior that restores, and the share of damaged images for which its solver converged."""

    prior: TrainedPrior
    converged: float


@torch.inference_mode()
def settled(machine: RBM, about: Description, seed: int, meter: Meter) -> Settled:
    """Find the mean pixels, damping, iterations, modes and log Z of a binary machine.

    Args:
        machine: the machine, in single precision.
        about: its description; solver settings and log Z are filled in.
        seed: seed of all that is drawn.
        meter: is told how many sweeps are done, of `SWEEPS`.
    """
    generator = torch.Generator(machine.weights.device).manual_seed(seed)
    images = drawn(machine, IMAGES, generator, meter)
    inference, converged = best_inference(machine, images, about.image_shape, seed)
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    modes = own_modes(machine, images, inference.modes, solver, generator)
    means = pixel_means(images)
    prior = TrainedPrior(replace(about, inference=inference), machine, means, modes)
    # One solution may be far below the sum of all; annealing may miss some.
    annealed = log_partition(machine, TEMPERATURES, RUNS, generator, torch.logit(means)).log_partition
    alone = float(np.fmax(annealed, Engine.of(prior, machine.weights.device).log_partition))
    return Settled(replace(prior, description=replace(prior.description, log_partition=alone)), converged)


def drawn(machine: RBM, count: int, generator: torch.Generator, meter: Meter) -> Tensor:
    """Images (count, D) that a machine draws: Gibbs sampling that begins hot, so that chains find all modes."""
    images = torch.rand(count, machine.visible.size, generator=generator).round()
    for sweep in range(1, SWEEPS + 1):
        cold = min(1.0, 2 * sweep / SWEEPS)
        hot = machine.with_parameters({name: cold * value for name, value in machine.parameters.items()})
        images = hot.gibbs_sweep(images, generator)
        meter(sweep)
    return images


def best_inference(machine: RBM, images: Tensor, image_shape: tuple[int, int], seed: int) -> tuple[Inference, float]:
    """The settings of TAP with the least damping that converge for nearly all of a machine's own images, damaged.

    Returns:
        The settings, and the share of images for which they converge; the settings of the highest share, if none
        converge for enough.
    """
    pixels = independent_pixels("bernoulli", images)
    trials = [Trial.of(images[:TRIED], task, image_shape, pixels, seed, grey=False) for task in DAMAGE]
    best, most = Inference(), -1.0
    for inference in _ladder():
        solver = solver_of(inference)
        found = [solver.solve(machine.tilt(each.channel.evidence(each.observed)), each.start) for each in trials]
        converged = torch.cat([part.status for part in found]) == Status.CONVERGED
        share = float(converged.double().mean())
        if share > most:
            taken = torch.cat([part.iterations for part in found])[converged]
            needed = MARGIN * int(taken.max()) if share else STEPS
            best, most = replace(inference, max_iter=100 * -(-needed // 100)), share
        if share >= ENOUGH:
            break
    return best, most


def _ladder() -> Iterator[Inference]:
    """Settings to try, ever calmer."""
    inference = Inference(max_iter=STEPS, **STARTS)
    yield inference
    for _ in range(CALMER):
        damping, tol = calmer(inference.damping, inference.tol)
        inference = replace(inference, damping=damping, tol=tol)
        yield inference
