"""Make priors of binary RBMs that other programs have trained: read a file, find the solver's settings, keep both."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restore import zoo
from restore.channels import parse_task
from restore.errors import InputError, ModelError, OutputError, UsageError, option, reason, shown
from restore.learning.course import independent_pixels, pixel_means
from restore.learning.modes import own_modes
from restore.learning.recipe.plan import STARTS
from restore.learning.run.place import Place
from restore.marginals import Status
from restore.priors import RBM
from restore.progress import Meter
from restore.solvers import solver_of
from restore.zoo import TrainedPrior, limits
from restore.zoo.description import Description
from restore.zoo.inference import Inference, calmer

# Names of tensors in lower case, letters and digits alone; earlier ones go first. `b` is the hidden bias beside `a`,
# and the visible one beside `c`; `weight` and `bias` are of a linear layer from pixels to hidden units.
NAMES: Mapping[str, str] = {
    "weights": "components w weights weight",
    "visible": "interceptvisible visiblebias biasvisible visbias vbias biasv bv vb a b",
    "hidden": "intercepthidden hiddenbias biashidden hidbias hbias biash bh hb c b bias",
}
# Weights under these names have a row for each hidden unit.
ROWS_HIDDEN = ("components", "weight")

# Bytes of a file, and of what is packed in it: a matrix of 11,000 x 11,000 in double precision.
MOST = 2**30
_SAVE = "save weights and biases alone, as components_, intercept_visible_ and intercept_hidden_, with np.savez"

# The sweeps in which images that are drawn cool down from noise; as many as there are modes.
SWEEPS = 600
# How many of them are damaged and restored, which takes a second or two, and how.
TRIED = 100
DAMAGE = ("flip:0.05", "flip:0.1", "flip:0.2")
# The share of these for which the solver has to converge, and its most iterations.
ENOUGH = 0.95
STEPS = 500


def read_rbm(path: Path, *, spins: bool = False, shape: tuple[int, int] | None = None) -> tuple[RBM, tuple[int, int]]:
    """The machine in a .npz or safetensors file, in single precision, and the height and width of its images.

    Units of -1 or 1 (`spins`) are converted exactly. Without a shape, images are square. Errors as `parameters_in`.
    """
    where = shown(path)
    weights, *biases = parameters_in(tensors_of(path), where)
    pixels, hidden = weights.shape
    if max(pixels, hidden) > limits.UNITS:
        raise ModelError(f"has a layer of {max(pixels, hidden)} units; at most {limits.UNITS} are known here", where)
    height, width = shape or (math.isqrt(pixels),) * 2
    if height * width != pixels:
        raise UsageError(f"{pixels} visible units are no image of {height}x{width}; give {option('shape')}", where)
    double = (RBM.from_spins if spins else RBM.binary)(weights, *biases)
    machine = RBM.binary(*(value.float().contiguous() for value in double.parameters.values()))
    if not all(bool(value.isfinite().all()) for value in machine.parameters.values()):
        raise ModelError("its numbers are too large for single precision; train again", where)
    return machine, (height, width)


def tensors_of(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, in double precision; nothing is unpickled."""
    where = shown(path)
    if not path.is_file():
        raise InputError("is no file; name one that holds the weights and biases of an RBM", where)
    if path.stat().st_size > MOST:
        raise ModelError(f"has more than {MOST} bytes; {_SAVE}", where)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if sum(member.file_size for member in archive.infolist()) > MOST:
                    raise ValueError(f"more than {MOST} bytes are packed in it")
            with np.load(path, allow_pickle=False) as arrays:
                found: dict[str, Any] = {name: arrays[name] for name in arrays.files}
        else:
            from safetensors.torch import load_file

            found = load_file(path)
        if 8 * sum(math.prod(value.shape) for value in found.values()) > MOST:
            raise ValueError(f"more than {MOST} bytes in double precision")
        found = {
            name: value.double() if isinstance(value, Tensor) else torch.from_numpy(np.asarray(value, np.float64))
            for name, value in found.items()
        }
    except OSError as fault:
        raise InputError(f"cannot be read ({fault.strerror or fault})", where) from fault
    except Exception as fault:  # numpy parses headers as Python source and lets any exception through
        raise ModelError(f"not a usable .npz or safetensors file ({reason(fault)}); {_SAVE}", where) from fault
    for name, value in found.items():
        if not bool(value.isfinite().all()):
            raise ModelError(f"{shown(name)} holds NaN or infinite values; train again", where)
    return found


def parameters_in(tensors: Mapping[str, Tensor], where: str) -> tuple[Tensor, Tensor, Tensor]:
    """The weights (D, H), visible bias (D,) and hidden bias (H,) among tensors, by their names."""
    held = ", ".join(f"{shown(name)} ({'x'.join(map(str, value.shape))})" for name, value in tensors.items())[:300]
    given: dict[str, str] = {}
    for role, names in NAMES.items():
        known = [
            [key for key in tensors if _plain(key) == name and key not in given.values()] for name in names.split()
        ]
        best = next(filter(None, known), [])
        if len(best) != 1:
            raise ModelError(f"holds {held}, in which {role} are not known by name; {_SAVE}", where)
        given[role] = best[0]
    # Some programs keep a bias as a matrix of one row or column.
    weights, visible, hidden = (tensors[name] for name in given.values())
    visible, hidden = (
        bias.flatten() if max(bias.shape, default=0) == bias.numel() else bias for bias in (visible, hidden)
    )
    size, fits = tuple(weights.shape), (visible.numel(), hidden.numel())
    if visible.dim() > 1 or hidden.dim() > 1 or size not in (fits, fits[::-1]):
        raise ModelError(f"holds {held}, which do not fit each other; {_SAVE}", where)
    if fits[0] == fits[1] and _plain(given["weights"]) not in ROWS_HIDDEN:
        raise ModelError("its weights are square; name them components_, with a row for each hidden unit", where)
    return weights if size == fits != fits[::-1] else weights.T, visible, hidden


def _plain(key: str) -> str:
    """The last part of a name such as `rbm.v_bias`, as in `NAMES`."""
    return re.sub(r"[^a-z0-9]", "", key.rpartition(".")[2].lower()).replace("biases", "bias")


def import_rbm(
    machine: RBM,
    header: Description,
    place: Place,
    card: str,
    *,
    seed: int = 0,
    meter: Meter = lambda done, note="": None,
) -> tuple[Inference, float]:
    """Keep a binary machine as a prior, with all that restoring needs; a stop leaves no empty folder.

    Returns the settings of its solver, and the share of its images, damaged, for which that converges. The meter
    receives the number of sweeps done, of `SWEEPS`.
    """
    assert place.target is not None
    left = "nothing was imported; the same command starts anew"
    try:
        prior, converged = prior_of(machine, header, seed, meter)
        zoo.save(place.target, prior, card)
        left = f"{shown(place.target)}: imported, but without its graph, so that only torch restores with it"
        place.add_graph(OutputError)
    except BaseException as stop:
        stop.add_note(left)
        # The folder that was made for the prior, if it is empty.
        with suppress(OSError):
            place.target.rmdir()
        raise
    return prior.description.inference, converged


@torch.inference_mode()
def prior_of(machine: RBM, header: Description, seed: int, meter: Meter) -> tuple[TrainedPrior, float]:
    """The prior of a machine, whose settings follow from images that it draws itself; and the share that converges."""
    generator = torch.Generator().manual_seed(seed)
    images = drawn(machine, STARTS["modes"], generator, meter)
    inference, converged = best_inference(machine, images, header.image_shape, seed)
    modes = own_modes(machine, images, inference, generator)
    return TrainedPrior(replace(header, inference=inference), machine, pixel_means(images), modes), converged


def drawn(machine: RBM, count: int, generator: torch.Generator, meter: Meter) -> Tensor:
    """Images (count, D) that a machine draws: Gibbs sampling that begins hot, so that chains find all modes."""
    images = torch.rand(count, machine.visible.size, generator=generator).round()
    for sweep in range(1, SWEEPS + 1):
        cold = min(1.0, 2 * sweep / SWEEPS)
        hot = machine.with_parameters({name: cold * value for name, value in machine.parameters.items()})
        images = hot.gibbs_sweep(images, generator)
        meter(sweep)
    return images


def best_inference(machine: RBM, images: Tensor, shape: tuple[int, int], seed: int) -> tuple[Inference, float]:
    """The settings of TAP with the least damping that converge for nearly all of a machine's own images, damaged.

    If no share of images is enough, those of the highest; also returns the share.
    """
    clean, pixels = images[:TRIED], independent_pixels("bernoulli", images)
    trials = []
    for task in DAMAGE:
        seen, channel = parse_task(task).damage(clean, shape, torch.Generator().manual_seed(seed))
        evidence = channel.evidence(seen)
        trials.append((machine.tilt(evidence), pixels.moments(evidence)[0]))
    inference, best, most = Inference(max_iter=STEPS, **STARTS), Inference(), -1.0
    # Each further step halves that of the solver.
    for _ in range(4):
        solver = solver_of(inference)
        found = [solver.solve(tilted, start) for tilted, start in trials]
        converged = torch.cat([part.status for part in found]) == Status.CONVERGED
        share = float(converged.double().mean())
        if share > most:
            needed = 2 * int(torch.cat([part.iterations for part in found])[converged].max()) if share else STEPS
            best, most = replace(inference, max_iter=100 * -(-needed // 100)), share
        if share >= ENOUGH:
            break
        damping, tol = calmer(inference.damping, inference.tol)
        inference = replace(inference, damping=damping, tol=tol)
    return best, most
