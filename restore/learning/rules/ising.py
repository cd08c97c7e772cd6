"""An Ising field, the simplest prior of pictures: pixels are like their neighbours, and nothing else is known.

Spins x = ±1 with log p(x) = J Σ w_ij x_i x_j - log Z over pairs of neighbours: w is 1 for the four that share a side,
and 1/√2, by their distance, for the four that share a corner. There is no field, so black and white are alike.

Its one parameter J is where damaged images are most probable (type II maximum likelihood), by the solver that restores
with it. Clean images alone ask for a J so strong that every small thing would vanish: most of a picture is uniform.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from restore.channels import BitFlip
from restore.errors import TrainingError, UsageError
from restore.learning.recipes.tables import PriorShape, require
from restore.learning.rounds import Round
from restore.learning.rules.contract import LearnerState
from restore.learning.rules.rule import InRounds
from restore.priors import FullyVisible
from restore.solvers import TAP
from restore.zoo.tiling import OF_WINDOWS, Tiling

CORNER = math.sqrt(0.5)

# Where the coupling is looked for: below all pixels are nearly independent, above a window has one colour.
WEAKEST, STRONGEST = 0.05, 0.5

# Flip probabilities under which a coupling has to explain images.
FLIPS = (0.05, 0.1, 0.2)

# The longest rows of which all states are summed over.
LONGEST = 20


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


@dataclass(frozen=True)
class IsingField(InRounds):
    """Finds J in one round.

    Attributes:
        width: pixels in a row of the images.
        images: how many of them, drawn at random, are damaged and explained.
    """

    rounds: ClassVar[int] = 1
    # Pictures larger than a window are restored by four neighbours alone; held-out pictures tell how strong these are.
    windows: ClassVar[Tiling] = replace(OF_WINDOWS, neighbours=0.8)

    width: int = 16
    images: int = 1000

    @property
    def restores_with(self) -> Mapping[str, Any]:
        return {"solver": "tap", "max_iter": 200, "tol": 1e-3, "damping": 0.5, "modes": 0, "starts": 1}

    def log_partition(self, machine: Any) -> float:
        weights = machine.weights.double()
        # The first two pixels are neighbours, and weights are of bits.
        return log_partition(float(weights[0, 1]) / 4, len(weights) // self.width, self.width)

    def check(self, prior: PriorShape) -> None:
        require(prior.kind.fully_visible, '[learner] ising is for [prior] family = "fvbm"; give that')
        require(1 <= self.width <= LONGEST, f"[learner] width must lie in 1 ... {LONGEST}, not {self.width}")
        require(self.images >= 1, f"[learner] images must be at least 1, not {self.images}")

    def most(self, prior: PriorShape, epochs: int) -> int:
        return self.rounds

    def at_work(self, prior: PriorShape, validation: Tensor) -> IsingField:
        return self

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """No couplings yet.

        Raises:
            TrainingError: if images do not consist of rows of `width` pixels.
        """
        pixels = images.shape[1]
        if pixels % self.width:
            raise TrainingError(f"images of {pixels} pixels have no rows of {self.width}; set [learner] width")
        return {"couplings": torch.zeros(pixels, pixels)}

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        from scipy.optimize import minimize_scalar

        pixels = images.shape[1]
        chosen = images[torch.randint(len(images), (self.images,), generator=generator, device=images.device)]
        uniform = torch.rand(chosen.shape, generator=generator, device=images.device)
        damaged = [(p, torch.where(uniform < p, 1 - chosen, chosen)) for p in FLIPS]
        weights = neighbours(pixels // self.width, self.width).to(images.device)
        solver = TAP(max_iter=200, tol=1e-3, damping=0.5)

        def explained(coupling: float) -> float:
            """Mean log p of the damaged images, in nats per pixel."""
            machine = FullyVisible.from_spins(coupling * weights, weights.new_zeros(pixels))
            alone, total = log_partition(coupling, pixels // self.width, self.width), 0.0
            for p, seen in damaged:
                evidence = BitFlip(p).evidence(seen)
                log_black = (seen * math.log(p) + (1 - seen) * math.log1p(-p)).sum(1)
                total += float((solver.solve(machine.tilt(evidence), seen).log_partition + log_black - alone).mean())
            return total / (len(damaged) * pixels)

        best = minimize_scalar(
            lambda coupling: -explained(coupling), bounds=(WEAKEST, STRONGEST), options={"xatol": 1e-3}
        )
        found = {"coupling": float(best.x), "nats": float(-best.fun)}
        said = f"a coupling of {best.x:.3g} explains damaged images best, by {-best.fun:.4f} nats a pixel"
        return Round({"couplings": best.x * weights}, found, said)

    def machine(self, state: Mapping[str, Tensor]) -> FullyVisible:
        couplings = state["couplings"].float()
        return FullyVisible.from_spins(couplings, couplings.new_zeros(len(couplings)))
