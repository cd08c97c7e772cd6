"""Frank-Wolfe's algorithm 1 to the letter: eq. 9, with the penalties the paper chooses from, beside growth as here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from harness import Asked, main, publish, read, write
from mean_likelihoods import ais_likelihood
from torch import Tensor

from restore.console import say
from restore.evaluation.card import table
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.units import log_one_plus_exp

# The penalties λ, of which the paper has 1 and .01 besides.
PENALTIES = (0.5, 0.1)

# Training images, samples per unit, units added, and the sizes at which the likelihood is measured.
IMAGES, SAMPLES, UNITS, SIZES = 50_000, 3000, 100, (5, 20, 50, 100)

# Iterations of L-BFGS for one unit, at most.
ITERATIONS = 50

# Steps on the visible bias after each unit, and their rate, of which the paper has .05 ... .005.
BIAS_STEPS, BIAS_RATE = 20, 0.05

# Standard deviation of the first unit w', of which the paper says "random".
SCALE = 0.01

# Sweeps of the persistent samples before a unit, and at the start.
SWEEPS, BURN_IN = 10, 50

# Runs and temperatures of annealing, and test images.
RUNS, SCHEDULE, TESTED = 100, "frank-wolfe", 10_000

# More effective runs than this share tell the likelihood.
TOLD = 0.1


@dataclass(frozen=True)
class Grown:
    """A machine on its way.

    Attributes:
        penalty: λ.
        units: how many were added; the first one, w', comes besides.
        size: |w| of the last unit, bias included.
        likelihood: mean log-likelihood of the test images, in nats, by AIS.
        effective: effective number of AIS runs.
    """

    penalty: float
    units: int
    size: float
    likelihood: float
    effective: float


def linear(point: np.ndarray, images: Tensor, samples: Tensor, penalty: float) -> tuple[float, np.ndarray]:
    """Eq. 9 and its gradient in w; the last entry of w is the bias, the weight of a pixel that is always 1."""
    weights = torch.from_numpy(point).to(images)
    value, slope = penalty / 2 * float(weights @ weights), penalty * weights
    for sign, visible in ((1, samples), (-1, images)):
        inputs = visible @ weights[:-1] + weights[-1]
        value += sign * float(log_one_plus_exp(inputs).mean())
        on = torch.sigmoid(inputs) / len(visible)
        slope = slope + sign * torch.cat([on @ visible, on.sum()[None]])
    return value, slope.double().numpy()


def machine_of(units: list[Tensor], bias: Tensor) -> RBM:
    weights = torch.stack(units, 1)
    return RBM.binary(weights[:-1], bias, weights[-1])


def grown(images: Tensor, penalty: float, seed: int) -> Iterator[tuple[RBM, float]]:
    """The machine after each round of algorithm 1, and the size of the unit it added, without end."""
    from scipy.optimize import minimize

    generator = torch.Generator().manual_seed(seed)
    pixels, mean = images.shape[1], images.mean(0)

    def start(scale: float) -> np.ndarray:
        return scale * torch.randn(pixels + 1, generator=generator).double().numpy()

    units, bias = [torch.from_numpy(start(SCALE)).float()], torch.zeros(pixels)
    samples = gibbs_steps(
        machine_of(units, bias), torch.rand(SAMPLES, pixels, generator=generator).round(), BURN_IN, generator
    )
    for _ in count():
        samples = gibbs_steps(machine_of(units, bias), samples, SWEEPS, generator)
        arguments = (images, samples, penalty)
        found = minimize(linear, start(0.1), arguments, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
        units.append(torch.from_numpy(found).float())
        for _ in range(BIAS_STEPS):
            samples = gibbs_steps(machine_of(units, bias), samples, 1, generator)
            bias = bias + BIAS_RATE * (mean - samples.mean(0))
        yield machine_of(units, bias), float(np.linalg.norm(found))


def measured(machine: RBM, images: Tensor, base: Tensor, seed: int) -> tuple[float, float]:
    """Mean log-likelihood of images by AIS, and the effective number of runs."""
    generator = torch.Generator().manual_seed(seed)
    found = ais_likelihood(machine, images, SCHEDULE, RUNS, generator, base)
    return found.mean, dict(found.details)["effective_runs"]


def as_table(found: list[Grown]) -> str:
    """Markdown: a row per penalty and size."""
    rows = [
        [f"{one.penalty:g}", str(one.units), f"{one.size:.2f}", f"{one.likelihood:.2f}", f"{one.effective:.0f}"]
        for one in found
    ]
    return table(["λ", "units added", "size of the last", "test log-likelihood", "effective runs"], rows)


def study(asked: Asked) -> None:
    """Grow machines by algorithm 1 to the letter, and write frank-wolfe-paper.json and a table."""
    path, settings = asked.records / "frank-wolfe-paper.json", {"seed": asked.seed, "n": asked.n or IMAGES}
    found: list[Grown] = read(path, settings, grown=Grown)["grown"]
    images = asked.images("mnist", "train", settings["n"])
    test, mean = asked.images("mnist", "test", TESTED), images.mean(0)
    base = torch.logit((mean * len(images) + 0.5) / (len(images) + 1))
    for penalty in PENALTIES:
        done = {one.units for one in found if one.penalty == penalty}
        # Where the samples have lost the machine, nothing that comes later can be told.
        if UNITS in done or any(one.effective < TOLD * RUNS for one in found if one.penalty == penalty):
            continue
        found = [one for one in found if one.penalty != penalty]
        for units, (machine, size) in enumerate(grown(images, penalty, asked.seed), 1):
            if units in SIZES:
                found.append(Grown(penalty, units, size, *measured(machine, test, base, asked.seed)))
                say(f"{found[-1]}")
                write(path, settings | {"grown": found})
                if units == UNITS or found[-1].effective < TOLD * RUNS:
                    break
    publish(asked, {"frank-wolfe-paper": as_table(found)})


if __name__ == "__main__":
    main(study)
