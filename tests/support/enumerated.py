"""Priors small enough to enumerate, candidates that answer what they are told to, and plain posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from machines import brute_force, random_rbm
from oracle import exact_moments

from benchmarks.filters.mean_field import mean_field
from restore.channels.damage import Damage, Observed
from restore.families import Features
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.tiles.blend import Watch
from restore.priors import RBM
from restore.status import Status
from restore.zoo.description import Description
from restore.zoo.inference import Effort, Inference


@dataclass(frozen=True, eq=False)
class ExactEngine:
    """A binary machine of few units, whose posterior is found by enumeration."""

    machine: RBM
    header: Description
    calls: list[tuple[np.ndarray, Damage]] = field(default_factory=list)
    status: Status = Status.CONVERGED
    backend: str = "exact"
    part: int = 128
    light_ground: bool = False

    @classmethod
    def of(cls, machine: RBM, shape: tuple[int, int], name: str = "exact", **facts: Any) -> ExactEngine:
        header = Description(
            name, shape, 127, "", "", inference=Inference(modes=0, starts=1), hidden=machine.hidden.size
        )
        return cls(machine, replace(header, **facts))

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self.calls.append((pictures, damage))
        count = len(pictures)
        evidence = damage.channel(False).evidence(torch.from_numpy(pictures.reshape(count, -1)).double())
        means = exact_moments(self.machine.tilt(evidence)).visible.expand(count, -1).numpy()
        layers, zero = ((means,), (means * (1 - means),)), np.zeros(count)
        return Posterior.solved(pictures, damage, layers, (zero + self.status, np.ones(count, int), zero), zero)


@dataclass(frozen=True, eq=False)
class FieldEngine(ExactEngine):
    """The mean field of neighbours that agree, of any size: it restores a disc."""

    coupling: float = 0.6

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self.calls.append((pictures, damage))
        white = (1 + mean_field(damage.log_odds(pictures), self.coupling)) / 2
        return Posterior.of_pixels(white, white * (1 - white))


# What a description says of a prior for pictures of any size.
ANY_SIZE: dict[str, Any] = {"family": "deep_convolutional", "hidden": 0, "layers": (Features(1, 3, 1, "spin"),)}


@dataclass(frozen=True)
class Opened:
    """Engines that are open already, in place of `restore.inference.open.Engines`."""

    engines: tuple[PictureEngine, ...]
    named: bool = True

    def for_picture(self, picture: Observed, grey: bool | None = None) -> tuple[PictureEngine, ...]:
        return self.engines

    def with_options(self, options: Options) -> Opened:
        return self

    @property
    def reader(self) -> PictureEngine:
        """The published prior of grey pages."""
        return Engines(Options()).reader

    @property
    def parts(self) -> PictureEngine:
        """The published prior of what is a page."""
        return Engines(Options()).parts


@dataclass(frozen=True, eq=False)
class Table:
    """Every picture of a prior, (S, h, w), and its probability, (S,); the machine's hidden units are summed out."""

    pictures: np.ndarray
    probability: np.ndarray

    @classmethod
    def of(cls, machine: RBM, shape: tuple[int, int]) -> Table:
        joint, pixels = brute_force(machine), shape[0] * shape[1]
        codes = (joint.states[:, :pixels] @ 2 ** np.arange(pixels)).astype(int)
        pictures = (np.arange(2**pixels)[:, None] >> np.arange(pixels)) & 1
        return cls(pictures.reshape(-1, *shape), np.bincount(codes, joint.probabilities, 2**pixels))

    def drawn(self, count: int, seed: int = 0) -> np.ndarray:
        rows = np.random.default_rng(seed).choice(len(self.pictures), count, p=self.probability)
        return self.pictures[rows].astype(float)

    def posterior(self, seen: np.ndarray, hidden: np.ndarray, of_white: Any, of_black: Any) -> np.ndarray:
        """P(white) of every pixel of one picture by Bayes' rule, after flips at a rate of each colour."""
        shown_white = np.where(self.pictures == 1, 1 - np.asarray(of_white), np.asarray(of_black))
        likelihood = np.where(hidden, 1.0, np.where(seen > 0.5, shown_white, 1 - shown_white)).prod((1, 2))
        weight = self.probability * likelihood
        return np.asarray((weight[:, None, None] * self.pictures).sum(0) / weight.sum())


SHAPE = (3, 4)


def small_machine(scale: float = 0.8, seed: int = 3) -> RBM:
    return random_rbm(12, 4, scale=scale, bias=0.5, seed=seed)


@dataclass(frozen=True, eq=False)
class Knowing:
    """A candidate that answers with a map (H, W) of means, whatever it is shown, and may change its mind by crop."""

    means: np.ndarray
    variances: np.ndarray | None = None
    names: tuple[str, str] = ("knowing", "none")
    prior: None = None
    calls: list[tuple[list[tuple[int, int]], Damage]] = field(default_factory=list)

    def solve(
        self, seen: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]], effort: Effort = "full"
    ) -> Posterior:
        self.calls.append((list(corners), damage))
        height, width = seen.shape[1:]

        def cut(values: np.ndarray) -> np.ndarray:
            return np.stack([values[top : top + height, left : left + width] for top, left in corners])

        means = cut(self.means)
        return Posterior.of_pixels(means, means * (1 - means) if self.variances is None else cut(self.variances))

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        raise NotImplementedError
