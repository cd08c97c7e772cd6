"""One digit at every flip probability, as each method restores it from one start (TAP machine, Fig. 9).

The picture shows an image of the data, so it lies beside the runs; the record has numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from baselines import NearestNeighbour, PointwiseEstimate
from denoising import ONE, PROBABILITIES, by, one_start
from harness import Asked, kept_of, main, publish, read, write
from mean_likelihoods import mean_and_error
from PIL import Image
from torch import Tensor

from restore.channels import Damage, parse_task
from restore.evaluation import metrics
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import read_recipe
from restore.solvers import Solution

# The priors whose estimates are shown, and the place of the digit among the test images.
PRIORS, DIGIT = tuple(f"tap-mnist-{hidden}" for hidden in (25, 50, 100, 500)), 0

# Ink is also measured on this many digits, at this probability: by the same methods, and, where its run is there, by
# table 1's machine with 100 units after so many epochs.
MANY, AT, RECIPE, EARLY = 100, 0.4, "dynamics/dynamics-mnist-100.toml", 10

# How many screen pixels a pixel has.
ZOOM = 2


@dataclass(frozen=True)
class Estimates:
    """A method on one digit, per flip probability: Matthews correlation, and the sum of means over the digit's."""

    name: str
    mcc: tuple[float, ...]
    ink: tuple[float, ...]


def estimates(
    name: str, method: Callable[[Tensor, Damage], Tensor | Solution], truth: Tensor, seed: int
) -> tuple[Estimates, Tensor]:
    """What a method makes of the digit (1, D) at every probability, in numbers and as means (11, D)."""
    found = []
    for p in PROBABILITIES:
        restored = method(*parse_task(f"flip:{p}").damage(truth, (28, 28), torch.Generator().manual_seed(seed)))
        found.append((restored.means[0] if isinstance(restored, Solution) else restored).cpu())
    mcc = tuple(round(float(metrics.matthews(truth, each)[0]), 3) for each in found)
    ink = tuple(round(float(each.sum() / truth.sum()), 3) for each in found)
    return Estimates(name, mcc, ink), torch.cat(found)


@dataclass(frozen=True)
class Ink:
    """The sum of means over that of the digit, at one flip probability: its mean over digits, and standard error."""

    name: str
    p: float
    digits: int
    mean: float
    standard_error: float


def ink_of(name: str, method: Callable[[Tensor, Damage], Tensor | Solution], truth: Tensor, seed: int) -> Ink:
    """How much ink a method gives many digits (N, D)."""
    restored = method(*parse_task(f"flip:{AT}").damage(truth, (28, 28), torch.Generator().manual_seed(seed)))
    means = restored.means[0] if isinstance(restored, Solution) else restored
    mean, error = mean_and_error(means.cpu().double().sum(1) / truth.double().sum(1))
    return Ink(name, AT, len(truth), round(mean, 3), round(error, 3))


def as_table(found: list[Estimates]) -> str:
    """Markdown: correlation and ink of every method at a few probabilities."""
    places = [PROBABILITIES.index(p) for p in (0.1, 0.3, 0.4, 0.5)]
    rows = [[one.name, *(f"{one.mcc[at]:.3f}, {one.ink[at]:.2f}" for at in places)] for one in found]
    return table(["correlation, ink", *(f"p = {PROBABILITIES[at]:g}" for at in places)], rows)


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Restore one digit at every flip probability; write one-digit.json, a table, and a picture beside the runs."""
    path, settings = asked.records / "one-digit.json", {"seed": asked.seed, "digit": DIGIT}
    truth, training = asked.images("mnist", "test", DIGIT + 1)[DIGIT:], asked.images("mnist", "train")
    methods: dict[str, Callable[[Tensor, Damage], Tensor | Solution]] = {
        "OPE": PointwiseEstimate.fit(training).restore,
        "1-NN": NearestNeighbour(training, keep_known=False).restore,
    }
    methods |= {name + ONE: by(one_start(Engine.load(name, asked.device))) for name in PRIORS}
    known = read(path, settings, estimates=Estimates, many=Ink)
    found: list[Estimates] = known["estimates"]
    many: list[Ink] = known["many"]
    if len(found) < len(methods):
        pairs = [estimates(name, method, truth, asked.seed) for name, method in methods.items()]
        found = [numbers for numbers, _ in pairs]
        rows = [np.concatenate(list(means.reshape(-1, 28, 28).numpy()), axis=1) for _, means in pairs]
        drawn = 255 - np.round(255 * np.concatenate(rows)).astype(np.uint8)
        asked.runs.mkdir(parents=True, exist_ok=True)
        Image.fromarray(drawn.repeat(ZOOM, 0).repeat(ZOOM, 1)).save(asked.runs / "one-digit.png")
        write(path, settings | {"estimates": found, "many": many})
    kept = kept_of(read_recipe(asked.recipes / RECIPE), asked.runs / Path(RECIPE).stem)
    if EARLY in kept:
        early = f"{Path(RECIPE).stem} after {EARLY} epochs{ONE}"
        methods[early] = by(one_start(Engine.load(str(kept[EARLY]), asked.device)))
    digits = asked.images("mnist", "test", MANY)
    missing = {name: method for name, method in methods.items() if name not in {one.name for one in many}}
    many += [ink_of(name, method, digits, asked.seed) for name, method in missing.items()]
    write(path, settings | {"estimates": found, "many": many})
    publish(asked, {"one-digit": as_table(found)})


if __name__ == "__main__":
    main(study)
