"""Make a prior of a binary RBM that another program has trained."""

from __future__ import annotations

import math
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from restore.channels import parse_task
from restore.console import Meter
from restore.errors import InputError, ModelError, UsageError, option, reason, shown
from restore.learning.course import independent_pixels
from restore.learning.finish import own_modes
from restore.learning.gradients.independent import pixel_means
from restore.learning.recipe.plan import STARTS
from restore.priors import RBM
from restore.sizes import size_text
from restore.solvers import solver_of
from restore.status import Status
from restore.zoo import TrainedPrior, limits
from restore.zoo.description import Description
from restore.zoo.inference import Inference, calmer

# Sweeps in which images that are drawn cool down from noise; and images that are damaged to find the solver's damping.
SWEEPS, TRIED = 600, 100
# The share of these for which the solver has to converge, and its most iterations.
CONVERGED_SHARE, MOST_ITERATIONS = 0.95, 1000


def read_rbm(path: Path, shape: tuple[int, int] | None = None) -> tuple[RBM, tuple[int, int]]:
    """Read a machine, in single precision, and the height and width of its images, square without a shape.

    The file, .npz or safetensors, holds the weights W (pixels, hidden units), the biases b of pixels and c of hidden
    units. Nothing is unpickled.

    Raises:
        RestoreError: if the file cannot be read, holds other arrays, or is larger than a prior's may be.
    """
    where = shown(path)
    weights, visible, hidden = values = _arrays(path, where)
    if weights.shape != (*visible.shape, *hidden.shape) or not weights.numel() or max(weights.shape) > limits.WIDEST:
        sizes = ", ".join("x".join(map(str, value.shape)) or "one number" for value in values)
        raise ModelError(f"W, b and c are {sizes}, not (pixels, hidden), (pixels), (hidden); save them so", where)
    if not all(bool(value.isfinite().all()) for value in values):
        raise ModelError("holds numbers that are NaN or infinite in single precision; train again", where)
    height, width = shape or (math.isqrt(len(weights)),) * 2
    if height * width != len(weights):
        fault = f"{len(weights)} pixels are no image of {size_text((height, width))}"
        raise UsageError(f"{fault}; give {option('shape')}", where)
    return RBM.binary(*values), (height, width)


def _arrays(path: Path, where: str) -> list[Tensor]:
    """The arrays W, b and c of a file, in single precision."""
    try:
        if path.stat().st_size > limits.PACKED:
            raise ValueError(f"more than {limits.PACKED} bytes")
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as arrays:
                if sum(member.file_size for member in archive.infolist()) > limits.PACKED:
                    raise ValueError(f"more than {limits.PACKED} bytes are packed in it")
                return [torch.from_numpy(np.asarray(arrays[name], np.float32)) for name in "Wbc"]
        from safetensors import safe_open

        with safe_open(path, "pt") as tensors:
            return [tensors.get_tensor(name).float() for name in "Wbc"]
    except OSError as fault:
        remedy = "name a .npz or safetensors file"
        raise InputError(f"cannot be read ({fault.strerror or fault}); {remedy}", where) from fault
    except Exception as fault:  # numpy parses headers as Python source and lets any exception through
        what = "not a .npz or safetensors file of W, b and c"
        raise ModelError(f"{what} ({reason(fault)}); save these alone", where) from fault


@torch.inference_mode()
def prior_of(machine: RBM, header: Description, seed: int, meter: Meter) -> tuple[TrainedPrior, float]:
    """Make the prior of a machine; also returns the share of its own images, damaged, for which its solver converges.

    Modes and damping follow from images that the machine draws: in `SWEEPS` of Gibbs sampling, which the meter counts.
    They begin hot, so that chains find all modes.
    """
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(STARTS["modes"], machine.visible.size, generator=generator).round()
    for sweep in range(1, SWEEPS + 1):
        cold = min(1.0, 2 * sweep / SWEEPS)
        hot = machine.with_parameters({name: cold * value for name, value in machine.parameters.items()})
        images = hot.gibbs_sweep(images, generator)
        meter(sweep)
    inference, share = _settled(machine, images, header.image_shape, seed)
    modes = own_modes(machine, images, inference, generator)
    return TrainedPrior(replace(header, inference=inference), machine, pixel_means(images), modes), share


def _settled(machine: RBM, images: Tensor, shape: tuple[int, int], seed: int) -> tuple[Inference, float]:
    """TAP with the least damping that converges for nearly all images, damaged; and the share for which it does."""
    observed, damage = parse_task("flip:0.2").damage(images[:TRIED], shape, torch.Generator().manual_seed(seed))
    evidence = damage.channel(grey=False).evidence(observed)
    tilted = machine.tilt(evidence)
    start = independent_pixels("bernoulli", images).moments(evidence)[0]
    inference = Inference(max_iter=MOST_ITERATIONS, **STARTS)
    while True:
        share = float((solver_of(inference).solve(tilted, start).status == Status.CONVERGED).double().mean())
        damping, tol = calmer(inference.damping, inference.tol)
        if share >= CONVERGED_SHARE or damping > 0.95:
            return inference, share
        inference = replace(inference, damping=damping, tol=tol)
