"""An Ising field, the simplest prior of pictures: pixels are like their neighbours, and nothing else is known.

Spins x = ±1 with log p(x) = J Σ w_ij x_i x_j - log Z over pairs of neighbours: w is 1 for the four that share a side,
and 1/√2, by their distance, for the four that share a corner. There is no field, so black and white are alike.

Its one parameter J is where damaged images are most probable (type II maximum likelihood), by the solver that restores
with it. Clean images alone ask for a J so strong that every small thing would vanish: most of a picture is uniform.

    python training/ising.py --data PATH -o ising

learns from PATH/drawings (see data/make.py) in half a minute, and writes the prior without its graph, which
`restore export ising` adds.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor

from restore import zoo
from restore.channels import BitFlip, parse_task
from restore.console import say, tell
from restore.data import Wanted, gather
from restore.errors import RestoreError, UsageError
from restore.evaluation.whole import by_prior, evaluate_whole
from restore.inference.torch_engine import Engine
from restore.learning.course import pixel_means
from restore.priors import FullyVisible
from restore.solvers import TAP
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import OF_WINDOWS

CORNER = math.sqrt(0.5)

# Where the coupling is looked for: below all pixels are nearly independent, above a window has one colour.
WEAKEST, STRONGEST = 0.05, 0.5

# Flip probabilities under which a coupling has to explain images.
FLIPS = (0.05, 0.1, 0.2)

# The longest rows of which all states are summed over.
LONGEST = 20

# Windows that the coupling is found on; how many of them are damaged and explained; and how they are restored.
SHAPE = (16, 16)
WINDOWS = Wanted(SHAPE, patches=20_000, levels="binary", held_out=0.02)
EXPLAINED = 1000
SOLVER = Inference(solver="tap", max_iter=200, tol=1e-3, damping=0.5, modes=0, starts=1)

# Larger pictures are restored by four neighbours alone. How strong these are is found among a few strengths, by wrong
# pixels of held-out pictures after a few kinds of damage.
NEIGHBOURS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8)
TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "holes:8:0.1")


def neighbours(height: int, width: int) -> Tensor:
    """The weights w of all pairs of pixels, (D, D).

    >>> neighbours(2, 2)[0].tolist()
    [0.0, 1.0, 1.0, 0.7071067690849304]
    """
    row, column = (torch.arange(height * width) // width, torch.arange(height * width) % width)
    apart = torch.stack([(place[:, None] - place).abs() for place in (row, column)])
    beside, across = apart.sum(0) == 1, (apart == 1).all(0)
    return beside.float() + CORNER * across.float()


def ising(coupling: float, height: int, width: int) -> FullyVisible:
    """The machine with this J over windows of height x width pixels, each 0 or 1."""
    return FullyVisible.from_spins(coupling * neighbours(height, width), torch.zeros(height * width))


@functools.cache
def log_partition(coupling: float, height: int, width: int) -> float:
    """log Z of `ising`, exactly: pixels join one by one, and only the last row and one pixel more are remembered.

    The solver is up to .04 bits per pixel below it near the critical coupling. Under the evidence of flips of 20 % it
    is off by less than .01.

    Raises:
        UsageError: if rows are longer than `LONGEST`.

    >>> round(log_partition(0.3, 1, 2) - math.log(2 + 2 * math.exp(-0.6)), 6)  # two alike, two unlike
    0.0
    """
    if width > LONGEST:
        raise UsageError(f"rows of {width} pixels have too many states to sum over; give at most {LONGEST}")
    alike = np.array([[1.0, -1.0], [-1.0, 1.0]])
    # Axes are the pixels met last, the oldest first: above left, above, above right, ..., left. Before the first row
    # all are black, which no pixel heeds.
    weights = np.zeros((2,) * (width + 1))
    weights[(0,) * (width + 1)] = 1.0
    total = 0.0
    for row in range(height):
        for column in range(width):
            near = {width: 1.0} if column else {}
            if row:
                near |= {1: 1.0} | ({0: CORNER} if column else {}) | ({2: CORNER} if column + 1 < width else {})
            joined = np.stack([weights, weights], -1)
            for axis, strength in near.items():
                shape = [1] * (width + 2)
                shape[axis] = shape[-1] = 2
                joined *= np.exp(coupling * strength * (alike - 1)).reshape(shape)
            total += coupling * sum(near.values())
            weights = joined.sum(0)
            largest = weights.max()
            weights /= largest
            total += math.log(largest)
    # Of bits, as `FullyVisible.from_spins` shifts it.
    return total + math.log(weights.sum()) - coupling * float(neighbours(height, width).sum()) / 2


def best_coupling(
    images: Tensor, width: int, generator: torch.Generator, count: int = EXPLAINED
) -> tuple[float, float]:
    """The J under which damaged images are most probable, and their mean log p, in nats per pixel.

    Args:
        images: shape (N, D), 0 or 1, in rows of `width` pixels, at most `LONGEST`.
        generator: draws some of the images, and damages them.
        count: how many are drawn.
    """
    from scipy.optimize import minimize_scalar

    pixels = images.shape[1]
    chosen = images[torch.randint(len(images), (count,), generator=generator)]
    uniform = torch.rand(chosen.shape, generator=generator)
    damaged = [(p, torch.where(uniform < p, 1 - chosen, chosen)) for p in FLIPS]
    solver = TAP(SOLVER.max_iter, damping=SOLVER.damping, tol=SOLVER.tol)

    def explained(coupling: float) -> float:
        machine = ising(coupling, pixels // width, width)
        alone, total = log_partition(coupling, pixels // width, width), 0.0
        for p, seen in damaged:
            evidence = BitFlip(p).evidence(seen)
            log_black = (seen * math.log(p) + (1 - seen) * math.log1p(-p)).sum(1)
            total += float((solver.solve(machine.tilt(evidence), seen).log_partition + log_black - alone).mean())
        return total / (len(damaged) * pixels)

    best = minimize_scalar(lambda coupling: -explained(coupling), bounds=(WEAKEST, STRONGEST), options={"xatol": 1e-3})
    return float(best.x), -float(best.fun)


def prior_of(images: Tensor, shape: tuple[int, int], coupling: float, threshold: int = 127) -> zoo.TrainedPrior:
    """The prior with this J, learnt from images (N, D) of a shape."""
    machine = ising(coupling, *shape)
    # As it is stored, in half precision.
    machine = FullyVisible.binary(machine.weights.half().float(), machine.layers[0].parameters["bias"])
    header = Description(
        "ising", shape, threshold, "drawings", "ising", inference=SOLVER, family="fvbm", tiling=OF_WINDOWS, hidden=0
    )
    modes = torch.zeros(0, -(-images.shape[1] // 8), dtype=torch.uint8)
    return zoo.TrainedPrior(header, machine, pixel_means(images), modes)


def with_neighbours(prior: zoo.TrainedPrior, pictures: Sequence[Tensor]) -> zoo.TrainedPrior:
    """The prior with the strength of neighbours that leaves fewest wrong pixels of whole pictures (H, W)."""

    def wrong(neighbours: float) -> float:
        header = replace(prior.description, tiling=replace(OF_WINDOWS, neighbours=neighbours))
        restorer = by_prior(Engine.of(replace(prior, description=header), torch.device("cpu")))
        found = (
            evaluate_whole(restorer, pictures, parse_task(task), torch.Generator().manual_seed(0)).error_all.mean
            for task in TASKS
        )
        return sum(math.log(max(each, 1e-6)) for each in found)

    best = min(NEIGHBOURS, key=wrong)
    return replace(prior, description=replace(prior.description, tiling=replace(OF_WINDOWS, neighbours=best)))


def command(
    data: Annotated[Path | None, typer.Option(help="Folder of named data sets [RESTORE_DATA].")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the prior.")] = Path("ising"),
) -> None:
    """Find the coupling of the Ising field of `drawings`."""
    torch.set_num_threads(1)
    gathered = gather("drawings", WINDOWS, root=data)
    images = torch.from_numpy((gathered.training.images > gathered.threshold).astype(np.float32)).flatten(1)
    coupling, nats = best_coupling(images, SHAPE[1], torch.Generator().manual_seed(0))
    prior = prior_of(images, SHAPE, coupling, gathered.threshold)
    wholes = [torch.from_numpy((whole > gathered.threshold).astype(np.float32)) for whole in gathered.wholes]
    prior = with_neighbours(prior, wholes)
    said = f"a coupling of {coupling:.3g} explains damaged images best, by {nats:.4f} nats a pixel"
    zoo.save(output, prior, f"# ising\n\n- end: {said}\n\n## Scores\n\nNot measured yet.\n")
    tell(f"{output}: {said}; neighbours {prior.description.tiling.neighbours:g}")


if __name__ == "__main__":
    try:
        typer.run(command)
    except RestoreError as fault:
        say(str(fault))
        sys.exit(fault.exit_code)
