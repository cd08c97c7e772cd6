"""Large sets (S-DCP, Figs. 3, 4, 6 and 7): one recipe per curve; after some epochs log Z is estimated by annealing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from dcp_learners import ARRIVED, WEIGHT_SCALE, learner_of
from kept import epoch_seconds
from mean_likelihoods import mean_log_likelihood
from torch import Tensor

from restore.console import Meter
from restore.errors import TrainingError
from restore.evaluation.card import plus_minus, table
from restore.evaluation.likelihoods.ais import estimate, log_weights
from restore.files import write_atomically
from restore.learning.course import CleanImages, pixel_means
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, Optimizer, PriorShape, Training
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import RBM, LayeredPrior

# As in the paper: hidden units, sweeps per mini-batch, how many gradient steps share them, and images.
HIDDEN, SWEEPS, INNER, BATCH = 500, 24, 6, 200

# A tenth of these temperatures finds log Z 6 nats too small after eight epochs of CD on MNIST.
RUNS, SCHEDULE = 100, "s-dcp"

# Of SSD, whose directions are some thirty times as long as gradients are.
SPECTRAL_RATES = (0.0005, 0.002)


@dataclass(frozen=True)
class Plan:
    """A curve to be trained on a large set.

    Attributes:
        data: name of the set.
        images: how many of its training images are used; 0 is all.
        algorithm, rate, batch: what distinguishes it, beside:
        inner: gradient steps that share the sweeps of a mini-batch, for S-DCP and CS-DCP.
        sweeps: their number.
        weight_scale: standard deviation of the first weights.
        zero_bias: whether the first visible biases are 0 instead of the log-odds of the pixels' means.
        epochs: passes over the images.
        every: epochs between two estimates of the likelihood.
    """

    data: str
    algorithm: str
    rate: float
    epochs: int
    every: int = 1
    images: int = 0
    batch: int = BATCH
    inner: int = INNER
    sweeps: int = SWEEPS
    weight_scale: float = WEIGHT_SCALE
    zero_bias: bool = False

    @property
    def name(self) -> str:
        parts = [self.data, self.algorithm.lower(), f"rate{self.rate:g}", f"epochs{self.epochs}"]
        told = {
            "images": (self.images, 0),
            "batch": (self.batch, BATCH),
            "inner": (self.inner, INNER),
            "sweeps": (self.sweeps, SWEEPS),
            "scale": (self.weight_scale, WEIGHT_SCALE),
        }
        parts += [f"{key}{value:g}" for key, (value, usual) in told.items() if value != usual]
        return "-".join(parts + ["zero"] * self.zero_bias)

    def recipe(self, seed: int) -> Recipe:
        """Plain ascent at a constant rate: no momentum, no weight decay."""
        return Recipe(
            name=self.name,
            data=Data(self.data, binarisation="sampled"),
            prior=PriorShape(hidden=HIDDEN, weight_scale=self.weight_scale),
            method="contrastive",
            learner=learner_of(self.algorithm, self.sweeps, self.inner, self.batch),
            training=Training(self.epochs, self.batch),
            optimizer=Optimizer("sgd", self.rate, 0.0, 0.0, "constant"),
            seed=seed,
            storage="float32",
        )


def plans() -> dict[str, tuple[Plan, ...]]:
    """The curves of each figure, in the order to train them; some belong to several."""
    pair, four = ("S-DCP", "CS-DCP"), ("CD", "CG", "S-DCP", "CS-DCP")
    few: dict[str, Any] = {"data": "mnist", "images": 10_000, "epochs": 10, "every": 5}
    wide = few | {"batch": 1000, "epochs": 30, "every": 10}
    long = few | {"rate": 0.01, "epochs": 200, "every": 20}
    return {
        "5": (
            *(Plan(algorithm="SSD", rate=rate, **wide) for rate in SPECTRAL_RATES),
            *(Plan(algorithm=name, rate=0.05, **wide) for name in ("CD", *pair)),
        ),
        "7b": tuple(
            Plan(algorithm=name, rate=0.05, weight_scale=scale, zero_bias=zero, **few)
            for zero in (True, False)
            for scale in (0.001, 0.01)
            for name in pair
        ),
        "3": tuple(Plan("mnist", name, rate, 8, every=2) for rate in (0.05, 0.01) for name in four),
        "4": tuple(Plan("omniglot", name, rate, 60, every=15) for rate in (0.05, 0.01) for name in four),
        "6a": tuple(Plan(algorithm=name, rate=rate, **few) for rate in (0.01, 0.05, 0.1) for name in pair),
        "6b": tuple(Plan(algorithm=name, rate=0.05, inner=inner, **few) for inner in (2, 6, 24) for name in pair),
        # Why 24 steps of one sweep each make the likelihood fall: chains of four sweeps, or a quarter of the rate.
        "6b-fall": tuple(
            Plan(algorithm="S-DCP", inner=24, sweeps=sweeps, rate=rate, **few)
            for sweeps, rate in ((SWEEPS, 0.05), (4 * SWEEPS, 0.05), (SWEEPS, 0.0125))
        ),
        # Why the likelihood falls in small batches: their many steps by chains of sixteen sweeps each, not four.
        "7a-fall": (Plan(algorithm="S-DCP", batch=100, sweeps=4 * SWEEPS, **long | {"epochs": 40, "every": 10}),),
        "7a": tuple(Plan(algorithm="S-DCP", rate=0.05, batch=batch, **few) for batch in (100, 200, 400)),
        "3-long": tuple(Plan(algorithm=name, **long) for name in four),
        "6b-long": tuple(Plan(algorithm="S-DCP", inner=inner, **long) for inner in (2, INNER, 24)),
        "7a-long": tuple(Plan(algorithm="S-DCP", batch=batch, **long) for batch in (100, BATCH, 400)),
    }


@dataclass(frozen=True)
class ZeroBias(CleanImages):
    """Clean images, and a first prior that does not know their pixels' means."""

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> LayeredPrior:
        prior = super().initial(hidden, weight_scale, generator)
        return prior.with_parameters(prior.parameters | {"units.0.bias": torch.zeros(self.images.shape[1])})


@dataclass(frozen=True)
class Curve:
    """A curve on a large set.

    Attributes:
        plan: how it was trained.
        epochs: after which the likelihood was estimated.
        likelihood: mean log-likelihood of the test images then, in nats, by annealing.
        errors: standard errors of its log Z.
        seconds: training time, the estimates included.
    """

    plan: Plan
    epochs: tuple[int, ...]
    likelihood: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: float


def train(
    plan: Plan, training: Tensor, test: Tensor, folder: Path, seed: int, meter: Meter = lambda done, note="": None
) -> Curve:
    """Train a curve, or go on with it, and estimate the likelihood of the test images along the way.

    Args:
        plan: what to train.
        training, test: binary images (N, D) and (M, D).
        folder: of the run; beside the files of `fit` it gets `likelihood.json`.
        seed: of the training and the annealing.
    """
    course = (ZeroBias if plan.zero_bias else CleanImages)(training)
    base = torch.logit(pixel_means(training))
    path = folder / "likelihood.json"
    record: dict[str, tuple[float, float]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def after_epoch(passed: Progress) -> None:
        machine, epoch = passed.machine, passed.done
        assert isinstance(machine, RBM)
        if epoch % plan.every == 0:
            found = estimate(log_weights(machine, SCHEDULE, RUNS, torch.Generator().manual_seed(seed), base))
            record[str(epoch)] = (mean_log_likelihood(machine, test, found), found.standard_error)
            write_atomically(path, json.dumps(record).encode(), TrainingError)
            meter(epoch, f"{record[str(epoch)][0]:.2f}")

    fingerprint = hashlib.sha256(training.to(torch.uint8).numpy().tobytes()).hexdigest()
    with torch.inference_mode():
        fit(plan.recipe(seed), course, Session(folder, fingerprint, resume=True, watch=after_epoch))
    values, errors = zip(*record.values(), strict=True)
    return Curve(plan, tuple(map(int, record)), values, errors, epoch_seconds(folder)[-1])


def arrival(curve: Curve, target: float) -> float | None:
    """The number of epochs, interpolated between estimates, after which a curve is at `ARRIVED` of a target.

    Log-likelihoods are negative, and 90 % of -90 is -100: so the level is target / ARRIVED.
    """
    level = target / ARRIVED
    points = list(zip(curve.epochs, curve.likelihood, strict=True))
    for (before, low), (epoch, value) in pairwise(points):
        if low < level <= value:
            return before + (epoch - before) * (level - low) / (value - low)
    return float(points[0][0]) if points[0][1] >= level else None


def figure_table(curves: Sequence[Curve], how: Shown) -> str:
    """Markdown: likelihood along training and at the end, and when a curve arrives at 90 % of the highest end."""
    target = max(curve.likelihood[-1] for curve in curves)
    longest = max(curves, key=lambda curve: len(curve.epochs)).epochs
    shown = sorted({longest[round((len(longest) - 1) * share)] for share in (0, 0.25, 0.5, 1)})
    rows = []
    for curve in curves:
        when = arrival(curve, target)
        along = dict(zip(curve.epochs, curve.likelihood, strict=True))
        errors = dict(zip(curve.epochs, curve.errors, strict=True))
        values = [plus_minus(along[epoch], errors[epoch], 1) if epoch in along else "-" for epoch in shown]
        rows.append([*how.row(curve.plan), *values, "-" if when is None else f"{when:.1f}"])
    epochs = [f"epoch {epoch}" for epoch in shown]
    return table([how.title, *how.by, *epochs, f"epochs to {target / ARRIVED:.1f}"], rows)


@dataclass(frozen=True)
class Shown:
    """How a figure of the paper is shown: its title, and what its curves are told apart by beside the algorithm.

    Attributes:
        panel, title: of the panel and of the table.
        by: heads of columns in the table, and what is in them.
        short: the same in the legend, where it is not the first column.
    """

    panel: str
    title: str
    by: Mapping[str, Callable[[Plan], str]]
    short: Callable[[Plan], str] | None = None

    def row(self, plan: Plan) -> list[str]:
        """The first columns of a curve's row."""
        return [plan.algorithm, *(text(plan) for text in self.by.values())]

    def label(self, plan: Plan) -> str:
        """A curve in the legend."""
        return ", ".join([plan.algorithm, self.short(plan)] if self.short else self.row(plan))


def _rate(plan: Plan) -> str:
    return f"{plan.rate:g}"


def _batch(plan: Plan) -> str:
    return str(plan.batch)


def _inner(plan: Plan) -> str:
    return f"{plan.inner} x {plan.sweeps // plan.inner}"


SHOWN = {
    "3": Shown("MNIST (Fig. 3)", "Fig. 3, MNIST", {"rate": _rate}),
    "4": Shown("Omniglot (Fig. 4)", "Fig. 4, Omniglot", {"rate": _rate}),
    "5": Shown("Batches of 1,000 (Fig. 5)", "Fig. 5, MNIST", {"rate": _rate}),
    "6a": Shown("Rates (Fig. 6a)", "Fig. 6a, MNIST", {"rate": _rate}),
    "6b": Shown("d (Fig. 6b)", "Fig. 6b, MNIST", {"d x K'": _inner}, lambda plan: str(plan.inner)),
    "7a": Shown("Batches (Fig. 7a)", "Fig. 7a, MNIST", {"batch": _batch}),
    "7b": Shown(
        "First values (Fig. 7b)",
        "Fig. 7b, MNIST",
        {
            "σ": lambda plan: f"{plan.weight_scale:g}",
            "visible bias": lambda plan: "0" if plan.zero_bias else "base rate",
        },
    ),
    "3-long": Shown("MNIST, 10,000 images (Fig. 3)", "Fig. 3, 10,000 images, rate .01", {}),
    "6b-fall": Shown("d = 24 (Fig. 6b)", "Fig. 6b, d = 24, MNIST", {"d x K'": _inner, "rate": _rate}),
    "6b-long": Shown("d, 200 epochs (Fig. 6b)", "Fig. 6b, 200 epochs of rate .01", {"d x K'": _inner}),
    "7a-fall": Shown("Batches of 100 (Fig. 7a)", "Fig. 7a, batches of 100, rate .01", {"d x K'": _inner}),
    "7a-long": Shown("Batches, 200 epochs (Fig. 7a)", "Fig. 7a, 200 epochs of rate .01", {"batch": _batch}),
}


# The figures that compare algorithms.
COMPARING = ("3", "3-long", "4", "5", "6b-fall", "6b-long", "7a-fall", "7a-long")


def tables(found: Mapping[str, Sequence[Curve]]) -> str:
    """The tables of the figures that compare algorithms, where there is a curve; those of settings are only drawn."""
    parts = []
    for name in COMPARING:
        how, curves = SHOWN[name], found.get(name, ())
        for rate in sorted({curve.plan.rate for curve in curves}) if name in ("3", "4") else [None]:
            some = [curve for curve in curves if rate is None or curve.plan.rate == rate]
            if len(some) > 1:  # one alone compares nothing
                parts.append(figure_table(some, how))
    return "\n\n".join(parts)
