"""What is measured of a prior that was kept along a run: its solutions, and its likelihood per unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import torch
from harness import spread
from mean_likelihoods import mean_and_error
from probing.findings import Findings
from probing.solutions import Solutions
from tap_likelihood import log_weights
from torch import Tensor

from restore.priors import FullyVisible, LayeredPrior

# At how many epochs of a run, from how many training images as starts, and of how many images the likelihood: the last
# as in the paper.
EPOCHS, STARTS, IMAGES = 5, 500, 10_000

# The machines of Figs. 5-7.
PROBED = ("dynamics-mnist-100", "dynamics-mnist-real-100", "dynamics-cbcl")

# Of the last epoch of this one there is a probe from as many starts as in the paper, whose bound on the number of
# solutions is about that many.
COUNTED, MANY = "dynamics-mnist-100", 10_000

# Digits behind the point of what the record keeps of each solution's free energy, in nats.
DIGITS = 1


# Data sets as they are written.
LABELS = {"mnist": "MNIST", "cbcl": "CBCL"}


@dataclass(frozen=True)
class PerUnit:
    """Mean TAP log-likelihood of images divided by the number of units of all layers, in nats.

    Attributes:
        n: number of images.
        mean: over the images.
        standard_error: of the mean, over the images alone.
        unfinished: images that the hidden layers of a deep machine did not settle for.
    """

    n: int
    mean: float
    standard_error: float
    unfinished: int


@dataclass(frozen=True)
class Moment:
    """A prior at an epoch of its training.

    Attributes:
        run: name of its recipe.
        recipe: digest of that.
        weights: SHA-256 of its tensors.
        data: what it was trained on.
        grey: whether its pixels are grey levels.
        sizes: number of units of every layer, the image first.
        minutes: how long it had been trained.
        probe: its solutions, in numbers.
        train, test: likelihood of images of either kind; None if the probe found no solution, and so no log Z.
    """

    run: str
    recipe: str
    weights: str
    data: str
    grey: bool
    sizes: tuple[int, ...]
    minutes: float
    probe: Findings
    train: PerUnit | None
    test: PerUnit | None

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from other moments: run, epoch and number of starts."""
        return self.run, self.epoch, self.probe.starts

    @property
    def epoch(self) -> int:
        assert self.probe.epoch is not None
        return self.probe.epoch

    @property
    def deep(self) -> bool:
        """Whether there are several layers of hidden units."""
        return len(self.sizes) > 2

    @property
    def summed(self) -> float | None:
        """The likelihood per unit of training images with log Z = log Σ_s exp(log Z_s) over the solutions, in nats."""
        if self.train is None:
            return None
        each = torch.tensor(self.probe.free_energies, dtype=torch.float64).neg()
        return self.train.mean + float(each.mean() - each.logsumexp(0)) / sum(self.sizes)

    @property
    def title(self) -> str:
        """The data set that it knows, and how; its layers if they are several."""
        name = LABELS.get(self.data, PurePath(self.data).name)
        layers = f", {len(self.sizes) - 1} hidden layers" if self.deep else ""
        return f"{'grey' if self.grey else 'binary'} {name}{layers}"


def wanted(run: str, epochs: Sequence[int], images: int) -> list[tuple[int, int]]:
    """Which of the epochs that a run has kept are to be measured, each from how many starts.

    Args:
        run: name of its recipe.
        epochs: at least one.
        images: how many there are to start from.
    """
    pairs = [(epoch, min(STARTS, images)) for epoch in spread(epochs, EPOCHS)]
    if run == COUNTED:
        pairs.append((max(epochs), min(MANY, images)))
    # Once, where there are too few images for more starts.
    return list(dict.fromkeys(pairs))


@torch.inference_mode()
def per_unit(machine: LayeredPrior | FullyVisible, images: Tensor, solutions: Solutions) -> PerUnit | None:
    """The likelihood of images (N, D) with log Z as the mean over distinct solutions (Fig. 3); None if there are none.

    Raises:
        ModelError: as in `log_weights`.
    """
    if not solutions.count:
        return None
    # As the solutions: in single precision some clamped machines do not settle as far as they should.
    weighed = log_weights(machine.to(torch.float64), images.double())
    mean, error = mean_and_error(weighed.values)
    units = sum(layer.size for layer in machine.layers)
    return PerUnit(
        len(images), (mean - float(solutions.log_partition.mean())) / units, error / units, weighed.unfinished
    )


def compact(found: Findings) -> Findings:
    """Findings with free energies as fine as pictures show them, and without each basin: thousands make no record."""
    return replace(found, free_energies=tuple(round(energy, DIGITS) for energy in found.free_energies), basins=())


def courses(moments: Sequence[Moment]) -> dict[str, list[Moment]]:
    """The moments of each run in the order of epochs, all from equally many starts; runs by layers, data and sizes."""
    ranked = sorted(moments, key=lambda one: (len(one.sizes), one.grey, -one.sizes[0], one.sizes, one.epoch))
    fewest = {run: min(one.probe.starts for one in ranked if one.run == run) for run in {one.run for one in ranked}}
    found: dict[str, list[Moment]] = {}
    for one in ranked:
        if one.probe.starts == fewest[one.run]:
            found.setdefault(one.run, []).append(one)
    return found


def last(moments: Sequence[Moment], run: str) -> Moment:
    """The moment of a run's last epoch; of several, that from the most starts."""
    return max((one for one in moments if one.run == run), key=lambda one: (one.epoch, one.probe.starts))
